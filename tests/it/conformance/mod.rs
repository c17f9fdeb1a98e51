//! One suite for every implementation of `storage::Interface`: the store and the cache in front of
//! it, each over memory (in JSON and in protobuf), the embedded file and etcd.

mod list;
mod objects;
mod store;
mod subjects;
mod watch;
mod watching;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::backend::{Backend, Compare, Op, Txn};
use ringwatch::storage::{
    DeleteOptions, GetOptions, Interface, List, ListOptions, NoCheck, StorageError, TryUpdate,
    UpdateOptions,
};

use objects::{key, pod};
use subjects::Support;
use watching::Watching;

/// How often an eventual condition is looked at, and how many times at most: a minute in all.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: u32 = 3000;

/// An implementation under test, on an empty store.
struct Subject {
    interface: Arc<dyn Interface>,
    /// The backend underneath, to compact and to corrupt.
    backend: Arc<dyn Backend>,
    /// How many changes push an event out of the window of history; 0 where only compaction does.
    window: usize,
    markers: AtomicUsize,
    /// The parts that must live as long as the subject: an etcd, a folder, running loops.
    _support: Support,
}

impl Subject {
    async fn create(&self, namespace: &str, name: &str) -> Arc<Object> {
        let object = pod(namespace, name);
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
        self.list("/pods/", |_| {})
            .await
            .expect("a consistent list");
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
        let key = format!("{}{}", subjects::PATH_PREFIX, key(namespace, name));
        let txn = Txn {
            compare: Compare::ModRevision(key.clone(), 0),
            then: Op::Put {
                key,
                value: Bytes::from_static(value.as_bytes()),
                lease: None,
            },
            otherwise: None,
        };
        let written = self.backend.txn(txn).await.expect("a write").revision;
        let seen = ListOptions {
            resource_version: Some(ResourceVersion(written)),
            ..ListOptions::default()
        };
        // A cache has seen it once it answers at its revision; whatever the answer is.
        let _ = self.interface.get_list("/pods/none/none", seen).await;
    }

    /// Looks until a condition holds.
    async fn eventually<F: Future<Output = bool>>(&self, what: &str, holds: impl Fn() -> F) {
        for _ in 0..LOOKS_MAX {
            if holds().await {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        panic!("it did not come about that {what}");
    }
}

/// Makes a module of tests for every implementation, with every case in it.
macro_rules! suite {
    ($($module:ident $what:literal $build:path;)* => $cases:tt) => {
        $(
            mod $module {
                suite!(@cases $what $build, $cases);
            }
        )*
    };
    (@cases $what:literal $build:path, { $($group:ident: $($case:ident)*;)* }) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                match $build().await {
                    Some(subject) => super::$group::$case(subject).await,
                    None => {
                        let case = concat!($what, " ", stringify!($case));
                        crate::support::tools::skipped(case, "no etcd");
                    }
                }
            }
        )*)*
    };
}

suite! {
    memory_store "the store in memory" super::subjects::memory_store;
    memory_cacher "the cache over memory" super::subjects::memory_cacher;
    memory_protobuf_store "the store of protobuf in memory" super::subjects::memory_protobuf_store;
    memory_protobuf_cacher "the cache over protobuf in memory" super::subjects::memory_protobuf_cacher;
    embedded_store "the store in a file" super::subjects::embedded_store;
    embedded_cacher "the cache over a file" super::subjects::embedded_cacher;
    etcd_store "the store in etcd" super::subjects::etcd_store;
    etcd_cacher "the cache over etcd" super::subjects::etcd_cacher;
    => {
        store:
            create_returns_what_is_stored
            create_refuses_a_version
            create_refuses_what_exists
            create_with_a_ttl_expires
            get_reads_by_version
            get_of_nothing_is_not_found
            delete_returns_the_last_content_at_its_own_revision
            delete_checks_its_preconditions
            delete_with_an_outdated_suggestion_deletes_the_newest
            delete_with_a_suggestion_of_a_deleted_object_is_not_found
            a_deletion_check_decides_on_the_newest_content
            update_creates_if_it_may
            update_that_changes_nothing_writes_nothing
            update_with_an_outdated_suggestion_tries_twice
            update_with_a_suggestion_of_a_deleted_object_is_not_found
            update_retries_when_somebody_writes_in_between
            update_checks_its_preconditions
            a_rejection_of_outdated_content_is_not_believed
            update_can_set_a_ttl
            keys_cannot_lead_out_of_their_type
            stats_count_objects
            corrupt_objects_are_named_and_stop_no_other
            the_current_version_is_that_of_the_last_write;
        list:
            a_list_is_never_older_than_the_last_write
            lists_are_in_key_order_and_end_at_their_prefix
            a_single_key_is_listed_without_recursion
            selectors_filter
            pages_show_the_state_of_the_first
            pages_with_a_selector_skip_what_it_leaves_out
            every_version_rule_of_lists
            bad_tokens_are_refused
            what_is_compacted_is_gone_and_the_rest_can_be_had;
        watch:
            each_change_is_told_once_and_in_order
            a_watch_resumes_after_any_version
            a_watch_from_zero_begins_with_the_state
            objects_enter_and_leave_a_selection
            labels_select_too
            a_namespace_and_a_name_are_watched_alone
            initial_events_end_with_a_bookmark
            initial_events_without_bookmarks_have_no_end_mark
            an_empty_type_ends_its_initial_events_at_once
            a_compacted_version_is_expired
            unread_events_wait
            many_unread_watches_hold_up_no_write
            every_watcher_sees_the_same;
    }
}
