//! Copies to and from a real etcd.

use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch::storage::backend::copy::{
    BackendSource, BackendTarget, NumberedLeases, complete, prepare,
};
use ringwatch::storage::backend::embedded::maintenance::{CopyFile, SnapshotSource, status};
use ringwatch::storage::backend::etcd::{Config, Etcd as Backend, TlsFiles};
use ringwatch::storage::backend::{Backend as _, LeaseId};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::{Unseen, assert_past, content, delete, keys, put, revision};
use crate::embedded::opened::Opened;
use crate::support::etcd::Etcd;

async fn connect(etcd: &Etcd) -> Arc<Backend> {
    let config = Config::new(vec![etcd.endpoint()], TlsFiles::default());
    Backend::connect(config, Clock::real())
        .await
        .map(Arc::new)
        .expect("a running etcd")
}

#[tokio::test]
async fn leases_have_the_numbers_that_are_chosen() {
    let Some(etcd) = Etcd::start("leases_have_the_numbers_that_are_chosen") else {
        return;
    };
    let backend = connect(&etcd).await;
    assert_ne!(backend.cluster_id().await.expect("a number"), 0);
    let lease = LeaseId(0x7fff_0000_1234);
    assert_eq!(backend.time_to_live(lease).await, Ok(None));
    for _ in 0..2 {
        backend.grant_numbered(lease, 600).await.expect("a lease");
    }
    let left = backend.time_to_live(lease).await.expect("an answer");
    assert!(left.is_some_and(|it| (500..=600).contains(&it)), "{left:?}");
    put(&*backend, "/a", "1", Some(lease)).await;
    assert_eq!(keys(&*backend).await[0].lease, Some(lease));
}

#[tokio::test]
async fn an_embedded_store_goes_to_etcd_and_back() {
    let Some(etcd) = Etcd::start("an_embedded_store_goes_to_etcd_and_back") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let [path, back] = ["store", "back"].map(|it| folder.path().join(it));
    let opened = Opened::at(&path);
    for number in 0..300 {
        put(&*opened.store, &format!("/registry/{number}"), "1", None).await;
    }
    for _ in 0..500 {
        put(&*opened.store, "/registry/0", "2", None).await;
    }
    delete(&*opened.store, "/registry/1").await;
    let lease = opened.store.grant_lease(600).await.expect("a lease");
    put(&*opened.store, "/registry/leased", "1", Some(lease)).await;
    let expected = content(&*opened.store).await;
    opened.close().await;

    let source = SnapshotSource::of_store("store".to_owned(), &path).expect("a source");
    let mut target = BackendTarget::new(connect(&etcd).await);
    prepare(&source, &mut target, &Unseen)
        .await
        .expect("a pass");
    let mut target = BackendTarget::new(connect(&etcd).await);
    let copied = complete(&source, &mut target, &Unseen)
        .await
        .expect("a copy");
    assert_eq!((copied.keys, copied.changes), (300, 0));
    let backend = connect(&etcd).await;
    assert_eq!(content(&*backend).await, expected);
    assert_past(&*backend, copied.revision).await;
    let left = backend.time_to_live(lease).await.expect("an answer");
    assert!(left.is_some_and(|it| it > 500), "{left:?}");

    let source = BackendSource::new("etcd".to_owned(), connect(&etcd).await);
    let mut target = CopyFile::open(&back).expect("a file");
    let copied = complete(&source, &mut target, &Unseen)
        .await
        .expect("a copy");
    drop(target);
    assert_eq!(copied.revision, revision(&*backend).await);
    assert_eq!(status(&back).expect("a status").digest, copied.digest);
    let opened = Opened::at(&back);
    assert_eq!(keys(&*opened.store).await, keys(&*backend).await);
    opened.close().await;
}

/// A key may end with its lease at any moment of the copy.
#[tokio::test]
async fn a_lease_that_ends_during_a_copy_takes_its_key() {
    let Some(etcd) = Etcd::start("a_lease_that_ends_during_a_copy_takes_its_key") else {
        return;
    };
    let backend = connect(&etcd).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    put(&*backend, "/stays", "1", None).await;
    // Long enough that a busy machine copies the key before.
    let lease = backend.grant_lease(5).await.expect("a lease");
    put(&*backend, "/ends", "1", Some(lease)).await;
    let source = BackendSource::new("etcd".to_owned(), connect(&etcd).await);
    let mut target = CopyFile::open(&path).expect("a file");
    prepare(&source, &mut target, &Unseen)
        .await
        .expect("a pass");
    eventually(DEADLINE, "the lease ends", async || {
        content(&*backend).await.len() == 1
    })
    .await;
    complete(&source, &mut target, &Unseen)
        .await
        .expect("a copy");
    drop(target);
    let opened = Opened::at(&path);
    assert_eq!(content(&*opened.store).await, content(&*backend).await);
    opened.close().await;
}
