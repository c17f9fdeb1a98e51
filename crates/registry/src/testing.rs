//! Helpers of the registry's tests: a storage in memory, a strategy that records its calls, updates.
#![allow(
    missing_docs,
    missing_debug_implementations,
    reason = "what tests share is read with them"
)]

use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use ringwatch::clock::{Clock, Instant};
use ringwatch::codec;
use ringwatch::meta::{FieldSchema, Object, ResourceVersion};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{Backend, Compare, Op, Txn};
use ringwatch::storage::etcd3::{Config, Store as Store3};
use ringwatch::storage::{
    self, Delegate, DeletionCheck, GetOptions, Interface, List, ListOptions, NextContent, NoCheck,
    Rejection, StorageError, TryUpdate, WatchStream,
};
use ringwatch_apimachinery::{Error, FieldError, GroupVersion, NameRule, User};
use serde_json::{Value, json};

use super::{
    DeleteOptions, GarbageCollection, Graceful, RequestContext, Resource, ServedBy, Store,
    Strategy, Subresource, UpdatedObject,
};

/// The wall time of the tests.
pub const NOW: &str = "2026-01-02T03:04:05Z";

/// The real storage over a backend in memory, which records the calls that it gets.
#[derive(Debug)]
pub struct MemoryStorage {
    store: Store3,
    backend: Arc<Embedded>,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// The keys of lists and watches, each with true if it was recursive.
    lists: Vec<(String, bool)>,
    /// The deadlines in the options of watches.
    deadlines: Vec<Option<Instant>>,
    /// The resource versions in the options of gets.
    read: Vec<Option<ResourceVersion>>,
    /// The TTLs of created objects in seconds.
    ttls: Vec<Option<u64>>,
    /// True if new objects with `managedFields` are refused as too large.
    refuses_managed_fields: bool,
    /// The write of another client just before the next deletion.
    before_deletion: Option<OtherWrite>,
    /// The failure of the next creation or update.
    failure: Option<Failure>,
}

/// A write of another client.
#[derive(Clone, Copy, Debug)]
pub enum OtherWrite {
    /// Adds a finalizer.
    Finalizes,
    /// Removes the object.
    Removes,
}

/// A failure of a write.
#[derive(Debug)]
pub struct Failure {
    pub error: StorageError,
    /// True if the object is written all the same.
    pub is_written: bool,
}

impl MemoryStorage {
    /// Makes a storage below `prefix` whose first write has revision 2, as in etcd.
    pub fn new(prefix: &str) -> Arc<Self> {
        let clock = clock();
        let backend = Arc::new(Embedded::in_memory(clock.clone()));
        let config = Config::new("/registry", prefix, clock);
        Arc::new(Self {
            store: Store3::new(Arc::clone(&backend) as _, config),
            backend,
            notes: Mutex::default(),
        })
    }

    pub async fn revision(&self) -> u64 {
        let revision = self.store.current_resource_version().await;
        revision.expect("reachable").0
    }

    /// Stores something at a free key that cannot be decoded.
    pub async fn put_corrupt(&self, key: &str) {
        let key = format!("/registry{key}");
        let put = Op::Put {
            key: key.clone(),
            value: "not an object".into(),
            lease: None,
        };
        let txn = Txn {
            compare: Compare::Version(key, 0),
            then: put,
            otherwise: None,
        };
        let put = self.backend.txn(txn).await.expect("reachable");
        assert!(put.succeeded, "the key is not free");
    }

    pub fn take_lists(&self) -> Vec<(String, bool)> {
        std::mem::take(&mut self.notes().lists)
    }

    pub fn take_deadlines(&self) -> Vec<Option<Instant>> {
        std::mem::take(&mut self.notes().deadlines)
    }

    pub fn take_read(&self) -> Vec<Option<ResourceVersion>> {
        std::mem::take(&mut self.notes().read)
    }

    pub fn take_ttls(&self) -> Vec<Option<u64>> {
        std::mem::take(&mut self.notes().ttls)
    }

    /// Makes another client write just before the next object is deleted.
    pub fn write_before_deletion(&self, write: OtherWrite) {
        self.notes().before_deletion = Some(write);
    }

    /// Makes the next creation or update fail.
    pub fn fail_next_write(&self, failure: Failure) {
        self.notes().failure = Some(failure);
    }

    pub fn refuse_managed_fields(&self) {
        self.notes().refuses_managed_fields = true;
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().expect("sound")
    }
}

#[async_trait]
impl Delegate for MemoryStorage {
    fn inner(&self) -> &dyn Interface {
        &self.store
    }

    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        self.notes().ttls.push(ttl);
        if self.notes().refuses_managed_fields && !object["metadata"]["managedFields"].is_null() {
            return Err(StorageError::TooLarge {
                message: "etcdserver: request is too large".to_owned(),
            });
        }
        let failure = self.notes().failure.take();
        fail(failure, self.store.create(key, object, ttl)).await
    }

    async fn delete(
        &self,
        key: &str,
        options: storage::DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        let before = self.notes().before_deletion.take();
        match before {
            Some(OtherWrite::Finalizes) => {
                let options = storage::UpdateOptions::default();
                self.store
                    .guaranteed_update(key, options, &mut Finalize)
                    .await?;
            }
            Some(OtherWrite::Removes) => {
                let options = storage::DeleteOptions::default();
                self.store.delete(key, options, &mut NoCheck).await?;
            }
            None => {}
        }
        self.store.delete(key, options, check).await
    }

    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError> {
        let call = (key.to_owned(), options.recursive);
        self.notes().lists.push(call);
        self.notes().deadlines.push(options.deadline);
        self.store.watch(key, options).await
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        self.notes().read.push(options.resource_version);
        self.store.get(key, options).await
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        let call = (key.to_owned(), options.recursive);
        self.notes().lists.push(call);
        self.store.get_list(key, options).await
    }

    async fn guaranteed_update(
        &self,
        key: &str,
        options: storage::UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        let failure = self.notes().failure.take();
        fail(failure, self.store.guaranteed_update(key, options, update)).await
    }
}

/// Fails a write: before it, or by the loss of its answer.
async fn fail(
    failure: Option<Failure>,
    write: impl Future<Output = Result<Arc<Object>, StorageError>>,
) -> Result<Arc<Object>, StorageError> {
    match failure {
        None => write.await,
        Some(Failure { error, is_written }) => {
            if is_written {
                write.await?;
            }
            Err(error)
        }
    }
}

/// An update that adds a finalizer.
struct Finalize;

#[async_trait]
impl TryUpdate for Finalize {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let existing = existing.ok_or("an update of nothing")?;
        let mut object = codec::tree(existing)?;
        object["metadata"]["finalizers"] = json!(["late/finalizer"]);
        Ok(NextContent { object, ttl: None })
    }
}

/// A strategy that records the methods that the store calls and answers as its fields say.
#[derive(Debug)]
pub struct TestStrategy {
    pub calls: Mutex<Vec<&'static str>>,
    pub create_on_update: bool,
    pub unconditional_update: bool,
    /// The grace period of the type, if it has any.
    pub grace: Option<i64>,
    pub garbage_collection: GarbageCollection,
    pub returns_deleted_object: bool,
    /// True if `data` is served as `content`.
    pub converts: bool,
    /// Keeps deleted objects while `spec.finalizers` is not empty, as namespaces do.
    pub holds: bool,
    /// The syntax of generated names when an object is updated.
    pub names_on_update: NameRule,
    pub status: StatusStrategy,
}

impl Default for TestStrategy {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            create_on_update: false,
            unconditional_update: true,
            grace: None,
            garbage_collection: GarbageCollection::DeleteDependents,
            returns_deleted_object: false,
            converts: false,
            holds: false,
            names_on_update: NameRule::PathSegment,
            status: StatusStrategy,
        }
    }
}

impl TestStrategy {
    fn note(&self, call: &'static str) {
        self.calls.lock().expect("sound").push(call);
    }

    /// Takes the calls since the last time.
    pub fn take_calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.calls.lock().expect("sound"))
    }
}

impl Strategy for TestStrategy {
    fn prepare_to_store(&self, _object: &mut Value) {
        self.note("prepare_to_store");
    }

    fn default(&self, object: &mut Value) {
        self.note("default");
        if object["defaulted"].is_null() {
            object["defaulted"] = json!(true);
        }
    }

    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        self.note("prepare_for_create");
        if let Some(members) = object.as_object_mut() {
            members.remove("status");
        }
        object["metadata"]["generation"] = json!(1);
    }

    fn validate(&self, object: &Value) -> Vec<FieldError> {
        self.note("validate");
        refuse_bad(object)
    }

    fn warnings_on_create(&self, _object: &Value) -> Vec<String> {
        self.note("warnings_on_create");
        vec!["created with a warning".to_owned()]
    }

    fn canonicalize(&self, object: &mut Value) {
        self.note("canonicalize");
        object["canonical"] = json!(true);
    }

    fn name_rule_on_update(&self) -> NameRule {
        self.names_on_update
    }

    fn allow_create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        self.unconditional_update
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        self.note("prepare_for_update");
        object["status"] = old["status"].clone();
        if object["status"].is_null() {
            object.as_object_mut().map(|it| it.remove("status"));
        }
        if object["data"] != old["data"] {
            let next = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            object["metadata"]["generation"] = json!(next);
        }
    }

    fn validate_update(&self, object: &Value, _old: &Value) -> Vec<FieldError> {
        self.note("validate_update");
        refuse_bad(object)
    }

    fn warnings_on_update(&self, _object: &Value, _old: &Value) -> Vec<String> {
        self.note("warnings_on_update");
        vec!["updated with a warning".to_owned()]
    }

    fn check_graceful_delete(
        &self,
        _context: &RequestContext,
        _object: &Value,
        options: &mut DeleteOptions,
    ) -> Graceful {
        let Some(grace) = self.grace else {
            return Graceful::No;
        };
        options.grace_period_seconds.get_or_insert(grace);
        Graceful::Yes
    }

    fn default_garbage_collection(&self) -> GarbageCollection {
        self.garbage_collection
    }

    fn returns_deleted_object(&self) -> bool {
        self.returns_deleted_object
    }

    fn holds_deletion(&self, object: &Value) -> bool {
        let finalizers = object["spec"]["finalizers"].as_array();
        self.holds && finalizers.is_some_and(|it| !it.is_empty())
    }

    fn prepare_for_deletion(&self, object: &mut Value) {
        object["status"]["phase"] = json!("Terminating");
    }

    fn to_served(&self, object: Value) -> Value {
        rename(object, self.converts, "data", "content")
    }

    fn to_stored(&self, object: Value) -> Value {
        rename(object, self.converts, "content", "data")
    }

    fn converts(&self) -> bool {
        self.converts
    }

    fn subresource(&self, name: &str) -> Option<&dyn Strategy> {
        (name == "status").then_some(&self.status)
    }
}

/// The strategy of the status subresource: an update changes nothing but the status.
#[derive(Debug)]
pub struct StatusStrategy;

impl Strategy for StatusStrategy {
    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        let status = object["status"].take();
        *object = old.clone();
        object["status"] = status;
    }
}

fn refuse_bad(object: &Value) -> Vec<FieldError> {
    if object["data"]["bad"].is_null() {
        Vec::new()
    } else {
        vec![FieldError::forbidden("data.bad", "not here")]
    }
}

fn rename(mut object: Value, really: bool, from: &str, to: &str) -> Value {
    if really
        && let Some(members) = object.as_object_mut()
        && let Some(value) = members.remove(from)
    {
        members.insert(to.to_owned(), value);
    }
    object
}

/// A store of ConfigMaps with its storage and its strategy.
pub struct Fixture {
    pub store: Store,
    pub storage: Arc<MemoryStorage>,
    pub strategy: Arc<TestStrategy>,
    pub context: RequestContext,
}

impl Fixture {
    pub fn new(strategy: TestStrategy) -> Self {
        let strategy = Arc::new(strategy);
        let storage = MemoryStorage::new("/configmaps");
        let resource = resource("configmaps", "ConfigMap", true, Arc::clone(&strategy) as _);
        Self {
            store: Store::new(resource, Arc::clone(&storage) as _),
            storage,
            strategy,
            context: context(),
        }
    }

    /// Creates a ConfigMap in namespace `ns`.
    pub async fn create(&self, metadata: Value) -> Value {
        let created = self.create_object(config_map(metadata)).await;
        self.strategy.take_calls();
        codec::tree(&created).expect("an object")
    }

    /// Creates an object as it is in namespace `ns`.
    pub async fn create_object(&self, object: Value) -> Arc<Object> {
        let options = Default::default();
        let created = self.store.create(&self.context, "ns", object, &options);
        created.await.expect("it can be created")
    }

    /// Creates a fixture with a strategy, and the ConfigMap `a` in it.
    pub async fn with_a(strategy: TestStrategy) -> Self {
        let fixture = Self::new(strategy);
        fixture.create(json!({"name": "a"})).await;
        fixture
    }

    /// Returns the stored object, or `None` if there is none.
    pub async fn stored(&self, name: &str) -> Option<Value> {
        let key = format!("/configmaps/ns/{name}");
        let found = self.storage.store.get(&key, GetOptions::default()).await;
        found.ok().map(|it| codec::tree(&it).expect("an object"))
    }
}

pub fn resource(
    plural: &str,
    kind: &str,
    namespaced: bool,
    strategy: Arc<dyn Strategy>,
) -> Arc<Resource> {
    let group_version = GroupVersion::new("", "v1");
    Arc::new(Resource {
        group_version: group_version.clone(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced,
        verbs: Vec::new(),
        subresources: vec![Subresource {
            name: "status".to_owned(),
            group_version: None,
            kind: kind.to_owned(),
            verbs: Vec::new(),
            served: ServedBy::Store,
        }],
        storage_prefix: plural.to_owned(),
        storage_version: group_version,
        storage_kind: kind.to_owned(),
        served: ServedBy::Store,
        schema: FieldSchema::default(),
        field_aliases: &[],
        scale: None,
        printer_columns: None,
        deprecated: None,
        strategy,
    })
}

fn clock() -> Clock {
    Clock::stepped(NOW.parse().expect("a time"))
}

pub fn context() -> RequestContext {
    RequestContext::new(User::default(), "tester".to_owned(), clock())
}

pub fn config_map(metadata: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": "v"}})
}

/// An update that replaces the object, as PUT does.
pub struct Put(pub Value);

#[async_trait]
impl UpdatedObject for Put {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        _existing: Option<&Value>,
    ) -> Result<Value, Error> {
        Ok(self.0.clone())
    }

    fn precondition_uid(&self) -> Option<String> {
        self.0["metadata"]["uid"].as_str().map(str::to_owned)
    }
}

/// An update that applies a function to the object, as PATCH does, and counts its calls.
pub struct Patch<F> {
    pub calls: u32,
    function: F,
}

pub fn patch<F: FnMut(&mut Value) + Send>(function: F) -> Patch<F> {
    Patch { calls: 0, function }
}

#[async_trait]
impl<F: FnMut(&mut Value) + Send> UpdatedObject for Patch<F> {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        self.calls += 1;
        let mut object = existing.cloned().unwrap_or_else(|| json!({}));
        (self.function)(&mut object);
        Ok(object)
    }
}
