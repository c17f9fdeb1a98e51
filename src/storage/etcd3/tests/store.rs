//! Requests of the store, as its backend gets them.

use futures::StreamExt;
use tokio::sync::watch;

use super::etcd::Etcd;
use super::*;
use crate::meta::{ResourceVersion, WatchEvent};
use crate::storage::etcd3::{Changes, Store};
use crate::storage::{ChangeSource, Interface, ListOptions, StorageError, StorageMediaType};

/// Returns an etcd whose leases are gone when they are used, so many times, and a store in it.
fn without_leases(gone: u32) -> (Arc<Etcd>, Store) {
    let backend = Etcd::new();
    backend.script().gone = gone;
    let store = Store::new(Arc::clone(&backend) as _, config());
    (backend, store)
}

async fn create(store: &Store, name: &str, ttl: Option<u64>) -> Result<(), StorageError> {
    let key = format!("/configmaps/d/{name}");
    let created = store.create(&key, &config_map(name, "x"), ttl).await;
    created.map(drop)
}

#[tokio::test]
async fn a_lease_that_is_gone_is_replaced_once() {
    for (gone, granted) in [(0, 1), (1, 2)] {
        let (backend, store) = without_leases(gone);
        create(&store, "a", Some(100)).await.expect("created");
        assert_eq!(backend.script().granted.len(), granted);
    }
    let (backend, store) = without_leases(2);
    create(&store, "a", Some(100))
        .await
        .expect_err("gone twice");
    assert_eq!(backend.script().granted.len(), 2);
}

#[tokio::test]
async fn an_object_that_does_not_expire_has_no_lease() {
    let (backend, store) = without_leases(0);
    create(&store, "a", None).await.expect("created");
    create(&store, "b", Some(0)).await.expect("created");
    assert_eq!(backend.script().granted.len(), 0);
}

#[tokio::test]
async fn the_mean_size_is_that_of_the_first_objects() {
    let backend = backend();
    let store = Store::new(Arc::clone(&backend) as _, config());
    let size = |bytes: usize| vec![b'x'; bytes];
    for number in 0..32 {
        let key = format!("/registry/configmaps/d/a{number:02}");
        write(&backend, &key, size(100)).await;
    }
    write(&backend, "/registry/configmaps/d/b", size(100_000)).await;
    let stats = store.stats().await.expect("a count");
    assert_eq!(stats.object_count, 33);
    assert_eq!(stats.estimated_average_object_size_bytes, 100);
}

#[tokio::test]
async fn the_compacted_revision_is_the_compactors() {
    let store = Store::new(backend() as _, config());
    assert_eq!(store.compact_revision(), 0);
    let (sender, compact_revision) = watch::channel(7);
    let followed = Config {
        compact_revision: Some(compact_revision),
        ..config()
    };
    let store = Store::new(backend() as _, followed);
    assert_eq!(store.compact_revision(), 7);
    sender.send_replace(9);
    assert_eq!(store.compact_revision(), 9);
}

#[tokio::test]
async fn progress_is_the_backends() {
    let (backend, store) = without_leases(0);
    let changes = Changes::new(backend as _, "/registry");
    assert!(!changes.progress_is_trusted());
    changes.request_progress().await.expect_err("none is made");
    store
        .request_watch_progress()
        .await
        .expect_err("none is made");
}

#[tokio::test(start_paused = true)]
async fn a_watch_waits_a_second_before_each_attempt_to_open_it_again() {
    let (backend, store) = without_leases(0);
    backend.script().away = 3;
    let clock = Clock::real();
    let begun = clock.now();
    let options = ListOptions {
        resource_version: Some(ResourceVersion(1)),
        recursive: true,
        ..ListOptions::default()
    };
    let mut watch = store.watch("/configmaps/", options).await.expect("a watch");
    create(&store, "a", None).await.expect("created");
    let Some(Ok(WatchEvent::Added(added))) = watch.next().await else {
        panic!("the object is added");
    };
    assert_eq!(added.name(), "a");
    assert_eq!((clock.now() - begun).as_secs(), 3);
}

#[test]
fn the_versioner_is_the_configured_one() {
    for (media_type, begin) in [
        (StorageMediaType::Json, &b"{"[..]),
        (StorageMediaType::Protobuf, &b"k8s\0"[..]),
    ] {
        let writing = Config {
            versioner: Versioner::default().writing(media_type),
            ..config()
        };
        let store = Store::new(backend() as _, writing);
        let prepared = store
            .versioner()
            .prepare_for_storage(&config_map("a", "x"), b"");
        assert!(prepared.expect("an object").stored().starts_with(begin));
    }
}
