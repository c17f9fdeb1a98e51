//! Copies from and into files of embedded stores.

use std::path::Path;
use std::sync::Arc;

use ringwatch::storage::backend::copy::{
    BackendSource, CopyError, CopySource, NumberedLeases, complete, prepare,
};
use ringwatch::storage::backend::embedded::maintenance::{CopyFile, SnapshotSource, check, status};
use ringwatch::storage::backend::{KeyValue, LeaseId, RangeRequest};

use super::faulty::{CALLS_OF_A_PASS, Faulty, Intruder};
use super::{Unseen, delete, keys, put, revision};
use crate::embedded::opened::Opened;

/// Returns a store in memory with keys, a lease and a history.
async fn source() -> Arc<Faulty> {
    let source = Arc::new(Faulty::new());
    source.grant_numbered(LeaseId(7), 60).await.unwrap();
    for number in 0..40 {
        put(&*source, &format!("/{number:02}"), "first", None).await;
    }
    put(&*source, "/leased", "first", Some(LeaseId(7))).await;
    put(&*source, "/03", "second", None).await;
    delete(&*source, "/04").await;
    source
}

fn reader(source: &Arc<Faulty>) -> BackendSource {
    BackendSource::new("source".to_owned(), source.clone())
}

/// Asserts that the file has the very keys of the source, and that a server would find nothing wrong with it.
async fn assert_same(path: &Path, expected: &[KeyValue], newest: u64) {
    let checked = check(path).expect("a store");
    assert_eq!(checked.findings, Vec::<String>::new());
    let status = status(path).expect("a status");
    assert_eq!(
        (status.revision, status.compacted_revision),
        (newest, newest)
    );
    let opened = Opened::at(path);
    assert_eq!(keys(&*opened.store).await, expected);
    opened.close().await;
}

#[tokio::test]
async fn a_file_has_the_revisions_of_its_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy");
    let source = source().await;
    let mut target = CopyFile::open(&path).expect("a file");
    let copied = complete(&reader(&source), &mut target, &Unseen)
        .await
        .expect("a copy");
    drop(target);
    let newest = revision(&*source).await;
    assert_eq!((copied.revision, copied.target_revision), (newest, newest));
    assert_eq!(copied.digest, status(&path).expect("a status").digest);
    assert_same(&path, &keys(&*source).await, newest).await;
    // A write goes on from there.
    let opened = Opened::at(&path);
    assert_eq!(put(&*opened.store, "/new", "1", None).await, newest + 1);
    opened.close().await;
}

#[tokio::test]
async fn passes_into_a_file_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy");
    let source = source().await;
    // The newest revision is that of a key, then of a deletion.
    for round in 0..4 {
        let mut target = CopyFile::open(&path).expect("a file");
        let pass = prepare(&reader(&source), &mut target, &Unseen)
            .await
            .expect("a pass");
        assert_eq!(pass.changes > 0, round != 3, "{round}: {pass:?}");
        match round {
            0 => drop(put(&*source, "/05", "third", None).await),
            1 => delete(&*source, "/06").await,
            _ => {}
        }
    }
    let mut target = CopyFile::open(&path).expect("a file");
    let copied = complete(&reader(&source), &mut target, &Unseen)
        .await
        .expect("a copy");
    assert_eq!(copied.changes, 0);
    drop(target);
    // The file lacked only its name.
    let mut target = CopyFile::open(&path).expect("a file");
    let again = complete(&reader(&source), &mut target, &Unseen)
        .await
        .expect("a copy");
    assert_eq!(again, copied);
    drop(target);
    assert_same(&path, &keys(&*source).await, revision(&*source).await).await;
}

#[tokio::test]
async fn a_file_is_copied_into_a_file_and_stays_locked_meanwhile() {
    let folder = tempfile::tempdir().expect("a folder");
    let [path, other] = ["store", "copy"].map(|it| folder.path().join(it));
    let opened = Opened::at(&path);
    for key in ["/a", "/b", "/c"] {
        put(&*opened.store, key, "1", None).await;
    }
    let lease = ringwatch::storage::backend::Backend::grant_lease(&*opened.store, 60);
    let lease = lease.await.expect("a lease");
    put(&*opened.store, "/leased", "1", Some(lease)).await;
    let expected = keys(&*opened.store).await;
    opened.close().await;
    let source = SnapshotSource::of_store("store".to_owned(), &path).expect("a source");
    SnapshotSource::of_store("store".to_owned(), &path).expect_err("it is locked");
    let mut target = CopyFile::open(&other).expect("a file");
    CopyFile::open(&other).expect_err("it is locked");
    let copied = complete(&source, &mut target, &Unseen)
        .await
        .expect("a copy");
    drop((source, target));
    assert_eq!(copied.digest, status(&path).expect("a status").digest);
    assert_same(&other, &expected, copied.revision).await;
}

#[tokio::test]
async fn a_file_goes_on_with_its_own_source_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy");
    let source = source().await;
    let mut target = CopyFile::open(&path).expect("a file");
    prepare(&reader(&source), &mut target, &Unseen)
        .await
        .expect("a pass");
    drop(target);
    let mut target = CopyFile::open(&path).expect("a file");
    let other = BackendSource::new("other".to_owned(), source.clone());
    let refused = complete(&other, &mut target, &Unseen)
        .await
        .expect_err("another");
    assert!(
        matches!(refused, CopyError::OtherSource { .. }),
        "{refused}"
    );
    let older = Arc::new(Faulty::new());
    put(&*older, "/a", "1", None).await;
    let refused = complete(&reader(&older), &mut target, &Unseen)
        .await
        .expect_err("older");
    assert!(matches!(refused, CopyError::WentBack { .. }), "{refused}");
    let copied = complete(&reader(&source), &mut target, &Unseen)
        .await
        .expect("a copy");
    assert_eq!(copied.changes, 0);
}

/// Everything that a file has of another source goes, even where revisions stand for other keys.
#[tokio::test]
async fn revisions_that_stand_for_other_keys_are_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy");
    let (first, second) = (Arc::new(Faulty::new()), Arc::new(Faulty::new()));
    for number in 0..30 {
        put(&*first, &format!("/{number:02}"), "1", None).await;
        put(
            &*second,
            &format!("/{:02}", (number * 7 + 11) % 30),
            "1",
            None,
        )
        .await;
    }
    put(&*second, "/03", "2", None).await;
    let mut target = CopyFile::open(&path).expect("a file");
    prepare(&reader(&first), &mut target, &Unseen)
        .await
        .expect("a pass");
    drop(target);
    let mut target = CopyFile::open(&path).expect("a file");
    complete(&reader(&second), &mut target, &Unseen)
        .await
        .expect("a copy");
    drop(target);
    assert_same(&path, &keys(&*second).await, revision(&*second).await).await;
}

#[tokio::test]
async fn a_source_that_is_written_to_is_copied_as_it_is_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    for after in 0..CALLS_OF_A_PASS {
        let path = folder.path().join(after.to_string());
        let source = source().await;
        source.intrude(Intruder {
            after,
            again: false,
        });
        let mut target = CopyFile::open(&path).expect("a file");
        complete(&reader(&source), &mut target, &Unseen)
            .await
            .expect("a copy");
        drop(target);
        assert_same(&path, &keys(&*source).await, revision(&*source).await).await;
    }
}

#[tokio::test]
async fn a_store_without_keys_is_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy");
    let source = Arc::new(Faulty::new());
    let mut target = CopyFile::open(&path).expect("a file");
    complete(&reader(&source), &mut target, &Unseen)
        .await
        .expect("a copy");
    drop(target);
    let opened = Opened::at(&path);
    let read = ringwatch::storage::backend::Backend::range(&*opened.store, RangeRequest::key("/a"));
    assert_eq!(read.await.expect("a read").revision, 1);
    opened.close().await;
    assert_eq!(reader(&source).newest().await.expect("a revision"), 1);
}
