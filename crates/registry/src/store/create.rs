//! Creates objects. The order is kube-apiserver's:
//!
//! 1. [`Store::receive_new`]: conversion to the storage version with defaults, managed fields, mutating admission, the
//!    write guard.
//! 2. [`Store::prepare_new`]: system fields, allocation (`BeginCreate`), the strategy with validation (`BeforeCreate`),
//!    validating admission. Repeated for each generated name.
//! 3. The write, which fails if the name exists.
//!
//! A create calls these itself. An update that creates its object calls them within `guaranteed_update`; see
//! [`super::update`].

use std::sync::Arc;

use ringwatch::meta::Object;
use ringwatch::storage::{GetOptions, StorageError};
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::{
    ZERO_TIME, is_terminating, remove, says_nothing, set, text,
};
use ringwatch_apimachinery::names::generate_name;
use ringwatch_spans::step;
use serde_json::Value;

use super::admit::Write;
use super::allocation::outcome;
use super::incoming::{fill_system_fields, wipe_system_fields};
use super::read::tree_of;
use super::request_error::{StoreOperation, to_request_error};
use super::{Store, dry_run};
use crate::allocator::{Allocation, WriteResult};
use crate::{CreateOptions, RequestContext};

/// Maximum number of names that are tried for an object with a `generateName`.
const GENERATED_NAME_ATTEMPTS_MAX: u32 = 8;

/// The steps before admission in which a create and a create-on-update differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreateSteps {
    /// True if the namespace is checked and set before admission. [`Store::prepare_new`] does it in any case.
    pub(super) ensures_namespace: bool,
    /// True if the request's field manager becomes the owner of the fields. An apply has recorded its owners itself.
    pub(super) tracks_fields: bool,
}

/// A new object after mutating admission.
#[derive(Clone, Debug)]
pub(super) struct AdmittedNew {
    pub(super) object: Value,
    /// True if a webhook or a policy has changed it.
    pub(super) is_changed: bool,
}

impl Store {
    /// Creates an object in `namespace` (empty if the resource has none).
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::Forbidden`] for the namespace, [`Error::Invalid`],
    /// [`Error::AlreadyExists`], [`Error::Storage`] with [`StorageError::VersionOnCreate`].
    pub async fn create(
        &self,
        context: &RequestContext,
        namespace: &str,
        object: Value,
        options: &CreateOptions,
    ) -> Result<Arc<Object>, Error> {
        self.offload_if_costly().await;
        let write = Write {
            context,
            namespace,
            dry_run: options.dry_run,
        };
        let steps = CreateSteps {
            ensures_namespace: true,
            tracks_fields: true,
        };
        let mut admitted = self.receive_new(write, object, steps).await?;
        match self.create_named(write, &admitted).await {
            // Retries without managedFields when the object is too large with them.
            Err(Error::Storage(StorageError::TooLarge { .. })) => {
                remove(&mut admitted.object, "managedFields");
                self.create_named(write, &admitted).await
            }
            result => result,
        }
    }

    /// Prepares a new object from the client up to mutating admission and the guard: the part of a creation that runs
    /// once, however many names are tried.
    ///
    /// # Errors
    /// Those of [`Self::create`] before the strategy is asked, and refusals.
    pub(super) async fn receive_new(
        &self,
        write: Write<'_>,
        object: Value,
        steps: CreateSteps,
    ) -> Result<AdmittedNew, Error> {
        let labels = object.pointer("/metadata/labels");
        let is_labelled = labels.is_some_and(|it| !says_nothing("labels", it));
        let mut object = self.incoming(write.context, object, !steps.tracks_fields)?;
        wipe_system_fields(&mut object);
        if steps.ensures_namespace {
            self.ensure_namespace(write.namespace, &mut object)?;
        }
        if steps.tracks_fields {
            self.track_fields(write.context, None, &mut object);
        }
        self.complete(&mut object);
        let is_changed = self.admit_new(write, &mut object).await?;
        if !is_labelled {
            self.strategy().forget_default_labels(&mut object);
        }
        Ok(AdmittedNew { object, is_changed })
    }

    /// Brings an admitted object into the form that is stored: system fields, the allocator, the strategy and
    /// validating admission. The caller finishes `allocation` whatever the result.
    ///
    /// # Errors
    /// [`Error::BadRequest`], [`Error::Invalid`], and the refusals of admission.
    pub(super) async fn prepare_new(
        &self,
        write: Write<'_>,
        admitted: &mut AdmittedNew,
        generated_name: Option<String>,
        allocation: &mut Option<Box<dyn Allocation>>,
    ) -> Result<(), Error> {
        let AdmittedNew { object, is_changed } = admitted;
        fill_system_fields(write.context, object);
        if let Some(name) = generated_name {
            set(object, "name", name);
        }
        self.ensure_namespace(write.namespace, object)?;
        *allocation = self.allocate(object, None, write.dry_run).await?;
        let name = text(object, "name").to_owned();
        let of_guard = self.wrong_for_guard(write, &name, object, None).await?;
        self.before_create(write.context, object, of_guard)?;
        self.guard_valid(write, &name, object, None).await?;
        self.validate_new(write, object).await?;
        if *is_changed {
            self.strategy().prepare_to_store(object);
            if text(object, "deletionTimestamp") == ZERO_TIME {
                // Go stores it as null, so that the object is not being deleted.
                remove(object, "deletionTimestamp");
            }
        }
        Ok(())
    }

    /// Ends a creation whose allocation is finished: translates the storage's error.
    ///
    /// # Errors
    /// The error of the storage, translated for the request.
    pub(super) async fn finish_create(
        &self,
        result: Result<Arc<Object>, StorageError>,
        key: &str,
        object: &Value,
    ) -> Result<Arc<Object>, Error> {
        match result {
            Ok(created) => Ok(created),
            Err(error) => Err(self.create_error(error, key, object).await),
        }
    }

    /// Creates an object under its name, or under generated ones until one is free.
    async fn create_named(
        &self,
        write: Write<'_>,
        admitted: &AdmittedNew,
    ) -> Result<Arc<Object>, Error> {
        let base = text(&admitted.object, "generateName");
        let generates = text(&admitted.object, "name").is_empty() && !base.is_empty();
        let attempts_max = if generates {
            GENERATED_NAME_ATTEMPTS_MAX
        } else {
            1
        };
        let mut attempts = 1;
        loop {
            let name = generates.then(|| generate_name(base));
            let result = self.create_once(write, admitted.clone(), name).await;
            if attempts == attempts_max || !matches!(result, Err(Error::AlreadyExists { .. })) {
                return result;
            }
            attempts += 1;
        }
    }

    async fn create_once(
        &self,
        write: Write<'_>,
        mut admitted: AdmittedNew,
        generated_name: Option<String>,
    ) -> Result<Arc<Object>, Error> {
        let mut allocation = None;
        let prepared = self.prepare_new(write, &mut admitted, generated_name, &mut allocation);
        let prepared = prepared.await;
        let object = admitted.object;
        let key = prepared.and_then(|()| self.key(write.namespace, text(&object, "name")));
        let key = match key {
            Ok(key) => key,
            Err(refusal) => {
                Self::finish_allocation(allocation, WriteResult::NotWritten).await;
                return Err(refusal);
            }
        };
        let result = if write.dry_run {
            dry_run::create(&*self.storage, &key, &object).await
        } else {
            let _step = step("Store object in database");
            self.storage.create(&key, &object, self.ttl_seconds).await
        };
        Self::finish_allocation(allocation, outcome(&result)).await;
        self.finish_create(result, &key, &object).await
    }

    /// Translates the error of a creation. If the object exists, the error tells if that one is being deleted.
    async fn create_error(&self, error: StorageError, key: &str, object: &Value) -> Error {
        let name = text(object, "name");
        let mut error = to_request_error(error, StoreOperation::Create, &self.resource, name);
        if let Error::AlreadyExists {
            being_deleted,
            generated,
            ..
        } = &mut error
        {
            *generated = !text(object, "generateName").is_empty();
            let existing = self.storage.get(key, GetOptions::default()).await;
            let existing = match existing {
                Ok(existing) => tree_of(&existing).await.ok(),
                Err(_) => None,
            };
            *being_deleted = existing.is_some_and(|it| is_terminating(&it));
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use ringwatch::codec;
    use serde_json::json;

    use super::*;
    use crate::testing::{Fixture, NOW, TestStrategy, config_map};

    async fn refused(fixture: &Fixture, namespace: &str, object: Value) -> Error {
        let options = CreateOptions::default();
        let result = fixture
            .store
            .create(&fixture.context, namespace, object, &options);
        result.await.expect_err("it is refused")
    }

    #[tokio::test]
    async fn a_new_object_gets_its_system_fields() {
        let fixture = Fixture::new(TestStrategy::default());
        let created = fixture
            .create(json!({
                "name": "a", "uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z",
                "deletionTimestamp": "2000-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3, "selfLink": "/x",
            }))
            .await;
        let metadata = &created["metadata"];
        let time: Timestamp = metadata["creationTimestamp"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!(time >= NOW.parse().unwrap(), "{time}");
        assert_eq!(
            metadata["creationTimestamp"].as_str().unwrap().len(),
            NOW.len()
        );
        let uid: uuid::Uuid = metadata["uid"].as_str().unwrap().parse().expect("a uid");
        assert_eq!(uid.get_version_num(), 4);
        assert_eq!(metadata["namespace"], "ns");
        assert_eq!(metadata["resourceVersion"], "2");
        for member in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            assert!(metadata[member].is_null(), "{member}");
        }
        assert_eq!(fixture.stored("a").await, Some(created));
    }

    #[tokio::test]
    async fn the_strategy_is_called_in_kubernetes_order() {
        let fixture = Fixture::new(TestStrategy::default());
        let mut object = config_map(json!({"name": "a"}));
        object["status"] = json!({"set": "by a client"});
        let options = CreateOptions::default();
        let store = &fixture.store;
        let created = store.create(&fixture.context, "ns", object, &options).await;
        assert_eq!(
            fixture.strategy.take_calls(),
            [
                "default",
                "prepare_for_create",
                "validate",
                "warnings_on_create",
                "canonicalize"
            ]
        );
        let created = codec::tree(&created.expect("created")).expect("an object");
        assert_eq!(
            (&created["defaulted"], &created["canonical"]),
            (&json!(true), &json!(true))
        );
        assert!(created["status"].is_null());
        assert_eq!(fixture.context.warnings(), ["created with a warning"]);
    }

    #[tokio::test]
    async fn what_is_invalid_is_named_all_at_once() {
        let fixture = Fixture::new(TestStrategy::default());
        let mut object = config_map(json!({"name": "Bad_Name"}));
        object["data"]["bad"] = json!("x");
        let error = refused(&fixture, "ns", object).await.to_string();
        assert!(
            error.starts_with("ConfigMap \"Bad_Name\" is invalid: [metadata.name: Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain must")
                && error.ends_with(", data.bad: Forbidden: not here]"),
            "{error}"
        );
        assert_eq!(fixture.storage.revision().await, 1, "nothing is written");
        assert_eq!(fixture.strategy.take_calls().last(), Some(&"validate"));
    }

    #[tokio::test]
    async fn wrong_metadata_is_a_bad_request() {
        let fixture = Fixture::new(TestStrategy::default());
        let error = refused(
            &fixture,
            "ns",
            config_map(json!({"name": "a", "labels": 5})),
        )
        .await;
        assert_eq!(
            error.to_string(),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type map[string]string"
        );
    }

    #[tokio::test]
    async fn the_namespace_must_match() {
        let fixture = Fixture::new(TestStrategy::default());
        let object = config_map(json!({"name": "a", "namespace": "other"}));
        let error = refused(&fixture, "ns", object).await;
        assert!(matches!(&error, Error::BadRequest(_)));
        assert_eq!(
            error.to_string(),
            "the namespace of the provided object does not match the namespace sent on the request"
        );
    }

    #[tokio::test]
    async fn names_are_generated() {
        let fixture = Fixture::new(TestStrategy::default());
        let created = fixture.create(json!({"generateName": "web-"})).await;
        let name = created["metadata"]["name"].as_str().expect("a name");
        assert!(
            name.starts_with("web-") && name.len() == "web-".len() + 5,
            "{name}"
        );
        assert!(fixture.stored(name).await.is_some());
    }

    #[tokio::test]
    async fn an_existing_name_is_refused_and_says_if_it_is_leaving() {
        let fixture = Fixture::new(TestStrategy::default());
        fixture
            .create(json!({"name": "a", "finalizers": ["x/y"]}))
            .await;
        let error = refused(&fixture, "ns", config_map(json!({"name": "a"}))).await;
        assert_eq!(error.to_string(), "configmaps \"a\" already exists");

        let deleted = fixture
            .store
            .delete(&fixture.context, "ns", "a", Default::default());
        assert!(!deleted.await.expect("it begins").finished);
        let error = refused(
            &fixture,
            "ns",
            config_map(json!({"name": "a", "generateName": "a"})),
        )
        .await;
        assert_eq!(
            error.to_string(),
            "object is being deleted: configmaps \"a\" already exists, the server was not able to generate a unique name for the object"
        );
    }

    #[tokio::test]
    async fn a_resource_version_is_refused_by_the_storage() {
        let fixture = Fixture::new(TestStrategy::default());
        let object = config_map(json!({"name": "a", "resourceVersion": "1"}));
        let error = refused(&fixture, "ns", object).await;
        assert!(
            matches!(error, Error::Storage(StorageError::VersionOnCreate)),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_dry_run_does_everything_but_store() {
        let fixture = Fixture::new(TestStrategy::default());
        let options = CreateOptions { dry_run: true };
        let object = config_map(json!({"name": "a"}));
        let store = &fixture.store;
        let created = store
            .create(&fixture.context, "ns", object.clone(), &options)
            .await;
        let created = codec::tree(&created.expect("it could be created")).expect("an object");
        assert!(created["metadata"]["resourceVersion"].is_null());
        let versioned = config_map(json!({"name": "a", "resourceVersion": "5"}));
        let versioned = store
            .create(&fixture.context, "ns", versioned, &options)
            .await;
        assert_eq!(versioned.expect("nobody looks at it").revision(), 5);
        assert!(created["metadata"]["uid"].is_string());
        assert_eq!(created["canonical"], true);
        assert_eq!(
            (fixture.stored("a").await, fixture.storage.revision().await),
            (None, 1)
        );

        fixture.create(json!({"name": "a"})).await;
        let error = store.create(&fixture.context, "ns", object, &options).await;
        assert!(matches!(error, Err(Error::AlreadyExists { .. })));
    }

    #[tokio::test]
    async fn objects_live_for_the_stores_time() {
        let mut fixture = Fixture::new(TestStrategy::default());
        for (set, kept) in [(None, None), (Some(0), None), (Some(3600), Some(3600))] {
            fixture.store = fixture.store.clone().with_ttl(set);
            fixture.create(json!({"generateName": "a"})).await;
            assert_eq!(fixture.storage.take_ttls(), [kept]);
        }
    }

    #[tokio::test]
    async fn repeated_owners_are_dropped_with_a_warning() {
        let fixture = Fixture::new(TestStrategy::default());
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"});
        let created = fixture
            .create(json!({"name": "a", "ownerReferences": [owner, owner]}))
            .await;
        assert_eq!(created["metadata"]["ownerReferences"], json!([owner]));
        assert!(fixture.context.warnings()[0].ends_with("duplicate UID(s) observed: u"));
    }

    #[tokio::test]
    async fn what_is_served_differently_is_stored_in_the_storage_version() {
        let fixture = Fixture::new(TestStrategy {
            converts: true,
            ..TestStrategy::default()
        });
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "content": {"k": "v"}});
        let options = CreateOptions::default();
        let created = fixture
            .store
            .create(&fixture.context, "ns", object, &options)
            .await;
        let created = created.expect("created");
        assert_eq!(fixture.stored("a").await.expect("stored")["data"]["k"], "v");
        let served = fixture.store.to_served(created).expect("convertible");
        assert_eq!(
            codec::tree(&served).expect("an object")["content"]["k"],
            "v"
        );
        assert_eq!(served.revision(), 2);
    }

    #[tokio::test]
    async fn the_fields_of_a_new_object_are_its_creators() {
        let fixture = Fixture::new(TestStrategy::default());
        let created = fixture
            .create(json!({"name": "a", "labels": {"app": "x"}}))
            .await;
        let mut managed = created["metadata"]["managedFields"][0].clone();
        let time = managed["time"].take();
        assert_eq!(time, created["metadata"]["creationTimestamp"]);
        assert_eq!(managed["manager"], "tester");
        assert_eq!(managed["operation"], "Update");
        assert_eq!(managed["apiVersion"], "v1");
        assert_eq!(managed["fieldsV1"]["f:data"], json!({".": {}, "f:k": {}}));
        let labels = json!({"f:labels": {".": {}, "f:app": {}}});
        assert_eq!(managed["fieldsV1"]["f:metadata"], labels);
        assert_eq!(
            managed["fieldsV1"]["f:defaulted"],
            json!({}),
            "defaults are fields"
        );
        assert!(
            managed["fieldsV1"]["f:canonical"].is_null(),
            "what follows is the server's"
        );
    }

    #[tokio::test]
    async fn an_object_that_is_too_large_does_without_managed_fields() {
        let fixture = Fixture::new(TestStrategy::default());
        fixture.storage.refuse_managed_fields();
        let created = fixture.create(json!({"name": "a"})).await;
        assert!(created["metadata"]["managedFields"].is_null());
    }
}
