//! Watches while others write.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{Backend, BackendError, WatchResponses};
use tokio::task::JoinSet;

use super::opened::Opened;
use super::requests::{delete, from, put, put_op, whatever};

/// The number of tasks that write.
const WRITERS: usize = 4;
/// The number of times that each of these tasks writes.
const WRITES: usize = 150;

/// The acknowledged writes: the key and value of each revision.
type Acknowledged = BTreeMap<u64, (String, String)>;

async fn write(store: Arc<Embedded>, writer: usize) -> Acknowledged {
    let mut acknowledged = Acknowledged::new();
    for n in 0..WRITES {
        let (key, value) = (format!("/{}", n % 7), format!("{writer}.{n}"));
        let op = put_op(&key, &value, None);
        let revision = store.txn(whatever(op)).await.unwrap().revision;
        acknowledged.insert(revision, (key, value));
        if n % 50 == writer {
            store.request_progress().await.unwrap();
        }
    }
    acknowledged
}

/// Reads up to a revision. Checks the order as it goes, and that progress covers what was delivered.
async fn follow(mut watch: WatchResponses, until: u64, pause: bool) -> Acknowledged {
    let mut delivered = Acknowledged::new();
    let mut last = 0;
    while last < until {
        let response = watch.next().await.unwrap().unwrap();
        if response.events.is_empty() {
            assert!(response.revision >= last);
            last = response.revision;
        }
        for event in response.events {
            assert!(event.kv.mod_revision > last, "after {last}");
            last = event.kv.mod_revision;
            let value = String::from_utf8(event.kv.value.to_vec()).unwrap();
            delivered.insert(last, (event.kv.key, value));
        }
        if pause {
            tokio::task::yield_now().await;
        }
    }
    delivered
}

async fn all_watches_see_every_write(opened: Opened) {
    let store = opened.store.clone();
    let until = 1 + (WRITERS * WRITES) as u64;
    let mut writers = JoinSet::new();
    let mut watches = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(store.clone(), writer));
    }
    for watch in 0..12_u64 {
        let store = store.clone();
        watches.spawn(async move {
            // The first ones from the beginning, the others from where the store is by then.
            let start = match watch {
                0..6 => 2,
                _ => {
                    store
                        .range(ringwatch::storage::backend::RangeRequest::key("/0"))
                        .await
                        .unwrap()
                        .revision
                        + 1
                }
            };
            let responses = store.watch(from(start)).await.unwrap();
            (start, follow(responses, until, watch % 2 == 0).await)
        });
        tokio::task::yield_now().await;
    }
    let mut acknowledged = Acknowledged::new();
    while let Some(written) = writers.join_next().await {
        acknowledged.append(&mut written.unwrap());
    }
    assert_eq!(acknowledged.len(), WRITERS * WRITES);
    while let Some(watch) = watches.join_next().await {
        let (start, delivered) = watch.unwrap();
        let expected = acknowledged.range(start..);
        assert!(delivered.iter().eq(expected), "from {start}");
    }
    opened.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_watches_in_memory_see_every_write() {
    all_watches_see_every_write(Opened::in_memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_watches_of_a_file_see_every_write() {
    let folder = tempfile::tempdir().unwrap();
    all_watches_see_every_write(Opened::at(&folder.path().join("db"))).await;
}

#[tokio::test]
async fn progress_follows_the_events() {
    let opened = Opened::in_memory();
    let store = &*opened.store;
    let mut watch = store.watch(from(0)).await.unwrap();
    let mut silent = {
        let mut request = from(0);
        request.progress = false;
        store.watch(request).await.unwrap()
    };
    let revision = put(store, "/a", "1").await;
    store.request_progress().await.unwrap();
    for events in [1, 0] {
        let response = watch.next().await.unwrap().unwrap();
        assert_eq!(
            (response.revision, response.events.len()),
            (revision, events)
        );
    }
    assert_eq!(silent.next().await.unwrap().unwrap().events.len(), 1);
    put(store, "/a", "2").await;
    assert_eq!(silent.next().await.unwrap().unwrap().events.len(), 1);
}

#[tokio::test]
async fn a_watch_that_fell_behind_a_compaction_ends() {
    let opened = Opened::in_memory();
    let store = &*opened.store;
    let mut behind = store.watch(from(0)).await.unwrap();
    let mut current = store.watch(from(3)).await.unwrap();
    put(store, "/a", "1").await;
    let revision = delete(store, "/a").await;
    store.compact(revision).await.unwrap();
    let compacted = BackendError::Compacted {
        compact_revision: revision,
    };
    assert_eq!(behind.next().await.unwrap().unwrap_err(), compacted);
    assert!(behind.next().await.is_none());
    let response = current.next().await.unwrap().unwrap();
    assert_eq!(response.events[0].kv.mod_revision, revision);
    let mut late = store.watch(from(2)).await.unwrap();
    assert_eq!(late.next().await.unwrap().unwrap_err(), compacted);
}

#[tokio::test]
async fn a_closed_store_ends_its_watches_behind_their_events() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Opened::at(&folder.path().join("db"));
    let mut watch = opened.store.watch(from(0)).await.unwrap();
    put(&*opened.store, "/a", "1").await;
    opened.close().await;
    assert_eq!(watch.next().await.unwrap().unwrap().events.len(), 1);
    let ended = watch.next().await.unwrap();
    assert!(matches!(ended, Err(BackendError::Unavailable(_))));
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_dropped_store_ends_its_watches() {
    let opened = Opened::in_memory();
    let mut watch = opened.store.watch(from(0)).await.unwrap();
    drop(opened);
    assert!(watch.next().await.unwrap().is_err());
    assert!(watch.next().await.is_none());
}

#[tokio::test]
async fn a_value_over_the_limit_is_refused() {
    let opened = Opened::in_memory();
    let mut value = "x".repeat(1_572_864 - 2);
    assert_eq!(put(&*opened.store, "/a", &value).await, 2);
    value.push('x');
    let refused = opened.store.txn(whatever(put_op("/a", &value, None))).await;
    let message = "etcdserver: request is too large".to_owned();
    assert_eq!(refused.unwrap_err(), BackendError::TooLarge(message));
}
