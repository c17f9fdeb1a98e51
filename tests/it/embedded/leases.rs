//! Leases, in paused time.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use ringwatch::storage::backend::{
    Backend, BackendError, EventKind, WatchResponse, WatchResponses,
};
use tokio::task::JoinSet;
use tokio::time::advance;

use super::opened::Opened;
use super::requests::{all, delete, from, put, put_leased};

/// Returns a store whose leases expire as long as the set lives.
fn with_leases(opened: &Opened) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let store = opened.store.clone();
    tasks.spawn(async move {
        store.run_leases(std::future::pending()).await;
    });
    tasks
}

async fn seconds(count: u64) {
    advance(Duration::from_secs(count)).await;
}

async fn next(watch: &mut WatchResponses) -> WatchResponse {
    watch.next().await.unwrap().unwrap()
}

/// Lets every task run until it waits.
async fn settle(opened: &Opened) {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    // In a file, a commit that began before this one is done after it.
    opened.store.compact(u64::MAX).await.unwrap_err();
}

async fn keys_vanish_together(opened: Opened) {
    let store = &*opened.store;
    let _tasks = with_leases(&opened);
    let lease = store.grant_lease(10).await.unwrap();
    for key in ["/a", "/b", "/c"] {
        put_leased(store, key, "1", Some(lease)).await.unwrap();
    }
    put(store, "/c", "2").await;
    let mut watch = store.watch(from(6)).await.unwrap();
    seconds(9).await;
    settle(&opened).await;
    assert_eq!(all(store).await.len(), 3);
    seconds(2).await;
    let response = next(&mut watch).await;
    let deleted: Vec<_> = response
        .events
        .iter()
        .map(|event| (event.kind, event.kv.key.as_str(), event.kv.mod_revision))
        .collect();
    assert_eq!(
        deleted,
        [(EventKind::Delete, "/a", 6), (EventKind::Delete, "/b", 6)]
    );
    assert_eq!(all(store).await, [("/c".to_owned(), "2".to_owned())]);
    let refused = put_leased(store, "/a", "1", Some(lease)).await;
    assert_eq!(refused.unwrap_err(), BackendError::LeaseNotFound);
    opened.close().await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_lease_in_memory_vanish_together() {
    keys_vanish_together(Opened::in_memory()).await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_lease_in_a_file_vanish_together() {
    let folder = tempfile::tempdir().unwrap();
    keys_vanish_together(Opened::at(&folder.path().join("db"))).await;
}

#[tokio::test(start_paused = true)]
async fn a_shorter_lease_that_comes_later_expires_first() {
    let opened = Opened::in_memory();
    let store = &*opened.store;
    let _tasks = with_leases(&opened);
    for (key, ttl_seconds) in [("/long", 100), ("/short", 10)] {
        let lease = store.grant_lease(ttl_seconds).await.unwrap();
        put_leased(store, key, "1", Some(lease)).await.unwrap();
        settle(&opened).await;
    }
    let mut watch = store.watch(from(0)).await.unwrap();
    for (after, key) in [(10, "/short"), (90, "/long")] {
        seconds(after).await;
        assert_eq!(next(&mut watch).await.events[0].kv.key, key);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changes_its_lease_goes_with_the_new_one() {
    let opened = Opened::in_memory();
    let store = &*opened.store;
    let _tasks = with_leases(&opened);
    let first = store.grant_lease(10).await.unwrap();
    let second = store.grant_lease(20).await.unwrap();
    put_leased(store, "/a", "1", Some(first)).await.unwrap();
    put_leased(store, "/a", "1", Some(second)).await.unwrap();
    seconds(11).await;
    settle(&opened).await;
    assert_eq!(all(store).await.len(), 1);
    let mut watch = store.watch(from(0)).await.unwrap();
    seconds(10).await;
    assert_eq!(next(&mut watch).await.events[0].kind, EventKind::Delete);
}

/// A key that is made again is not the one that had the lease, with which it must not go.
async fn a_key_that_is_made_again_outlives_the_lease_that_it_had(opened: Opened) {
    let store = &*opened.store;
    let _tasks = with_leases(&opened);
    let lease = store.grant_lease(10).await.unwrap();
    for key in ["/again", "/goes", "/plain"] {
        put_leased(store, key, "1", Some(lease)).await.unwrap();
    }
    delete(store, "/again").await;
    put(store, "/again", "2").await;
    put(store, "/plain", "2").await;
    let mut watch = store.watch(from(0)).await.unwrap();
    seconds(11).await;
    let response = next(&mut watch).await;
    let deleted: Vec<_> = response.events.iter().map(|it| &*it.kv.key).collect();
    assert_eq!(deleted, ["/goes"]);
    assert_eq!(all(store).await.len(), 2);
    opened.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_in_memory_that_is_made_again_outlives_the_lease_that_it_had() {
    a_key_that_is_made_again_outlives_the_lease_that_it_had(Opened::in_memory()).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_in_a_file_that_is_made_again_outlives_the_lease_that_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let opened = Opened::at(&folder.path().join("db"));
    a_key_that_is_made_again_outlives_the_lease_that_it_had(opened).await;
}

async fn leased(path: &Path) -> Opened {
    let opened = Opened::at(path);
    let lease = opened.store.grant_lease(10).await.unwrap();
    put_leased(&*opened.store, "/a", "1", Some(lease))
        .await
        .unwrap();
    opened
}

#[tokio::test(start_paused = true)]
async fn a_lease_has_its_whole_time_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let opened = leased(&path).await;
    seconds(8).await;
    opened.close().await;
    let opened = Opened::at(&path);
    let _tasks = with_leases(&opened);
    seconds(8).await;
    settle(&opened).await;
    assert_eq!(all(&*opened.store).await.len(), 1);
    let mut watch = opened.store.watch(from(0)).await.unwrap();
    seconds(3).await;
    assert_eq!(next(&mut watch).await.events[0].kind, EventKind::Delete);
    opened.close().await;
    let opened = Opened::at(&path);
    assert!(all(&*opened.store).await.is_empty());
    opened.close().await;
}

#[tokio::test(start_paused = true)]
async fn leases_stop_with_their_shutdown_and_with_the_store() {
    let opened = Opened::in_memory();
    opened.store.run_leases(async {}).await;
    let lease = opened.store.grant_lease(10).await.unwrap();
    put_leased(&*opened.store, "/a", "1", Some(lease))
        .await
        .unwrap();
    opened.store.close();
    seconds(20).await;
    let forever = std::future::pending();
    opened.store.run_leases(forever).await;
    assert_eq!(all(&*opened.store).await.len(), 1);
}
