//! One suite of tests for every implementation of `storage::Interface`: a [`Subject`] is the implementation on an empty
//! store, and [`suite!`] makes a test of every case for each function that builds one.
//!
//! Only what implementations have in common belongs here. What builds the subjects lies in the tests of their crates.
#![allow(
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "what tests share fails as tests do"
)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    missing_docs,
    missing_debug_implementations,
    reason = "the same"
)]

pub mod list;
mod objects;
pub mod races;
pub mod store;
pub mod stored_form;
mod suites;
pub mod updates;
pub mod watch;
mod watching;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::backend::{Backend, Compare, LeaseId, Op, Txn};
use ringwatch::storage::{
    DeleteOptions, GetOptions, Interface, List, ListOptions, NoCheck, StorageError, TryUpdate,
    UpdateOptions,
};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

pub use objects::{key, pod, schema};
#[doc(hidden)]
pub use suites::skipped;
use watching::Watching;

/// An implementation under test, on an empty store.
pub struct Subject {
    interface: Arc<dyn Interface>,
    /// The backend underneath, to compact and to corrupt.
    backend: Arc<dyn Backend>,
    /// The number of changes that push an event out of the window of history; 0 where only compaction does.
    window: usize,
    /// The API version of the objects.
    api_version: &'static str,
    /// The prefix of keys in the backend.
    path_prefix: &'static str,
    /// True if nobody else writes to the store.
    is_alone: bool,
    markers: AtomicUsize,
    /// The parts that must live as long as the subject: an etcd, a folder, running loops.
    _support: Box<dyn Any + Send + Sync>,
}

impl Subject {
    /// Creates the subject of an implementation over a backend whose keys begin with `path_prefix`. `window` changes
    /// push an event out of its window of history; 0 if only compaction does. `support` is dropped last.
    pub fn new(
        interface: Arc<dyn Interface>,
        backend: Arc<dyn Backend>,
        path_prefix: &'static str,
        window: usize,
        support: impl Any + Send + Sync,
    ) -> Self {
        Self {
            interface,
            backend,
            window,
            api_version: "v1",
            path_prefix,
            is_alone: true,
            markers: AtomicUsize::new(0),
            _support: Box::new(support),
        }
    }

    /// Returns the subject with objects of another API version, in a store to which others write as well.
    #[must_use]
    pub fn among_others(self, api_version: &'static str) -> Self {
        Self {
            api_version,
            is_alone: false,
            ..self
        }
    }

    /// Returns a pod with no node yet.
    fn pod(&self, namespace: &str, name: &str) -> Value {
        let mut pod = pod(namespace, name);
        pod["apiVersion"] = json!(self.api_version);
        pod
    }

    async fn create(&self, namespace: &str, name: &str) -> Arc<Object> {
        let object = self.pod(namespace, name);
        self.interface
            .create(&key(namespace, name), &object, None)
            .await
            .expect("a new object")
    }

    async fn get(&self, namespace: &str, name: &str) -> Result<Arc<Object>, StorageError> {
        self.interface
            .get(&key(namespace, name), GetOptions::default())
            .await
    }

    async fn delete(
        &self,
        namespace: &str,
        name: &str,
        options: DeleteOptions,
    ) -> Result<Arc<Object>, StorageError> {
        self.interface
            .delete(&key(namespace, name), options, &mut NoCheck)
            .await
    }

    async fn update(
        &self,
        namespace: &str,
        name: &str,
        options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        self.interface
            .guaranteed_update(&key(namespace, name), options, update)
            .await
    }

    async fn set_node(&self, namespace: &str, name: &str, node: &str) -> Arc<Object> {
        self.change(namespace, name, "/spec/nodeName", node).await
    }

    async fn label(&self, namespace: &str, name: &str, label: &str, value: &str) -> Arc<Object> {
        self.change(namespace, name, &format!("/metadata/labels/{label}"), value)
            .await
    }

    /// Sets one member of an object.
    async fn change(&self, namespace: &str, name: &str, at: &str, to: &str) -> Arc<Object> {
        let mut update = objects::Set {
            at: at.to_owned(),
            to: to.to_owned(),
        };
        let updated = self
            .update(namespace, name, UpdateOptions::default(), &mut update)
            .await;
        updated.expect("an update")
    }

    async fn list(
        &self,
        key: &str,
        set: impl FnOnce(&mut ListOptions),
    ) -> Result<List, StorageError> {
        let mut options = ListOptions {
            recursive: true,
            ..ListOptions::default()
        };
        set(&mut options);
        self.interface.get_list(key, options).await
    }

    /// Waits until reads of any version see what has been written: a cache may lag behind.
    async fn catch_up(&self) {
        let versions = |list: List| {
            let version = |object: &Arc<Object>| (object.name().to_owned(), object.revision());
            list.items.iter().map(version).collect::<Vec<_>>()
        };
        let newest = self.list("/pods/", |_| {}).await;
        let newest = versions(newest.expect("a consistent list"));
        // The store may have answered, which says nothing of a cache in front of it.
        eventually(
            DEADLINE,
            "reads of any version see all writes",
            async || {
                let any =
                    |options: &mut ListOptions| options.resource_version = Some(ResourceVersion(0));
                let list = self.list("/pods/", any).await;
                versions(list.expect("a list of any version")) == newest
            },
        )
        .await;
    }

    async fn watch(&self, key: &str, set: impl FnOnce(&mut ListOptions)) -> Watching {
        self.try_watch(key, set).await.expect("a watch")
    }

    async fn try_watch(
        &self,
        key: &str,
        set: impl FnOnce(&mut ListOptions),
    ) -> Result<Watching, StorageError> {
        let mut options = ListOptions {
            recursive: true,
            ..ListOptions::default()
        };
        set(&mut options);
        self.interface.watch(key, options).await.map(Watching)
    }

    async fn watch_from_now(&self, key: &str) -> Watching {
        let now = self
            .interface
            .current_resource_version()
            .await
            .expect("a version");
        self.watch(key, |options| options.resource_version = Some(now))
            .await
    }

    fn next_marker(&self) -> String {
        format!("marker-{}", self.markers.fetch_add(1, Ordering::Relaxed))
    }

    /// Writes so much that earlier events leave any window, and returns the newest revision.
    async fn fill_the_window(&self) -> u64 {
        self.create("filler", "f").await;
        let mut newest = 0;
        for number in 0..=self.window {
            newest = self
                .label("filler", "f", "n", &number.to_string())
                .await
                .revision();
        }
        let gone = self.delete("filler", "f", DeleteOptions::default()).await;
        self.catch_up().await;
        gone.expect("the filler").revision().max(newest)
    }

    async fn compact(&self, revision: u64) {
        self.backend.compact(revision).await.expect("a compaction");
    }

    /// Stores bytes as they are, as something else than this program might.
    async fn put_raw(&self, namespace: &str, name: &str, value: &'static str) {
        let value = Bytes::from_static(value.as_bytes());
        let written = self.put_bytes(namespace, name, value, None).await;
        let seen = ListOptions {
            resource_version: Some(ResourceVersion(written)),
            ..ListOptions::default()
        };
        // A cache has seen it once it answers at its revision; whatever the answer is.
        let _ = self.interface.get_list("/pods/none/none", seen).await;
    }

    /// Stores a pod with a lease, and returns the revision.
    async fn put_leased(&self, namespace: &str, name: &str, lease: LeaseId) -> u64 {
        let value = self.pod(namespace, name).to_string().into();
        self.put_bytes(namespace, name, value, Some(lease)).await
    }

    /// Stores bytes where there are none, and returns the revision.
    async fn put_bytes(
        &self,
        namespace: &str,
        name: &str,
        value: Bytes,
        lease: Option<LeaseId>,
    ) -> u64 {
        let key = format!("{}{}", self.path_prefix, key(namespace, name));
        let txn = Txn {
            compare: Compare::ModRevision(key.clone(), 0),
            then: Op::Put { key, value, lease },
            otherwise: None,
        };
        self.backend.txn(txn).await.expect("a write").revision
    }
}
