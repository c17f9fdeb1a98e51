//! Copies that fail at any call and are begun again.

use std::sync::Arc;

use ringwatch::storage::backend::LeaseId;
use ringwatch::storage::backend::copy::{
    BackendSource, BackendTarget, CopyError, FinishedCopy, complete, prepare,
};

use super::faulty::{CALLS_OF_A_PASS, Failure, Faulty, Intruder};
use super::{Unseen, assert_past, content, delete, put, revision};

/// More calls than a copy of these tests makes.
const CALLS_MAX: u64 = 2_000;

pub(super) async fn copied(
    source: &Arc<Faulty>,
    target: &Arc<Faulty>,
) -> Result<FinishedCopy, CopyError> {
    let source = BackendSource::new("source".to_owned(), source.clone());
    complete(&source, &mut BackendTarget::new(target.clone()), &Unseen).await
}

pub(super) async fn prepared(source: &Arc<Faulty>, target: &Arc<Faulty>) -> Result<u64, CopyError> {
    let source = BackendSource::new("source".to_owned(), source.clone());
    let mut target = BackendTarget::new(target.clone());
    Ok(prepare(&source, &mut target, &Unseen).await?.changes)
}

/// Returns a source with keys, one of them with a lease, and a history.
async fn source() -> Arc<Faulty> {
    use ringwatch::storage::backend::copy::NumberedLeases;
    let source = Arc::new(Faulty::new());
    source.grant_numbered(LeaseId(7), 60).await.unwrap();
    for number in 0..12 {
        put(&*source, &format!("/{number:02}"), "first", None).await;
    }
    put(&*source, "/leased", "first", Some(LeaseId(7))).await;
    put(&*source, "/03", "second", None).await;
    delete(&*source, "/04").await;
    source
}

async fn assert_copy(source: &Arc<Faulty>, target: &Arc<Faulty>, copied: &FinishedCopy) {
    let newest = revision(&**source).await;
    assert_eq!(copied.revision, newest);
    assert_eq!(copied.target_revision, revision(&**target).await);
    assert_eq!(content(&**target).await, content(&**source).await);
    assert_past(&**target, newest).await;
}

#[tokio::test]
async fn a_copy_has_the_keys_and_leases_of_its_source_and_newer_revisions() {
    let (source, target) = (source().await, Arc::new(Faulty::new()));
    let copied = copied(&source, &target).await.expect("a copy");
    assert_eq!((copied.keys, copied.changes, copied.expired), (12, 12, 0));
    assert_copy(&source, &target, &copied).await;
}

#[tokio::test]
async fn a_copy_that_fails_at_any_call_goes_on() {
    let source = source().await;
    for failure in [Failure::Before, Failure::After] {
        let mut failures = 0;
        for after in 0..CALLS_MAX {
            let target = Arc::new(Faulty::new());
            target.fail(after, failure);
            let first = copied(&source, &target).await;
            if !target.mend() {
                break;
            }
            failures += 1;
            let error = first.expect_err("a call failed");
            let was_finished = failure == Failure::After
                && super::keys(&*target).await.iter().any(|kv| kv.key == "/00")
                && super::keys(&*target)
                    .await
                    .iter()
                    .all(|kv| kv.key.starts_with('/'));
            match copied(&source, &target).await {
                Ok(copied) => assert_copy(&source, &target, &copied).await,
                // The answer to the last call of all was lost.
                Err(CopyError::NotEmpty { keys: 12 }) if was_finished => {
                    assert_past(&*target, revision(&*source).await).await;
                }
                Err(again) => panic!("{after}: {error}; then {again}"),
            }
        }
        assert!((30..CALLS_MAX).contains(&failures), "{failures}");
    }
}

/// A copy is whole if its last write was made, whether or not that is known.
#[tokio::test]
async fn the_lost_answer_to_the_last_write_is_no_failure() {
    let (source, target) = (source().await, Arc::new(Faulty::new()));
    copied(&source, &target).await.expect("a copy");
    let last = target.calls() - 1;
    let target = Arc::new(Faulty::new());
    target.fail_once(last, Failure::After);
    let whole = copied(&source, &target).await.expect("a whole copy");
    assert!(target.mend(), "no answer was lost");
    assert_copy(&source, &target, &whole).await;

    let target = Arc::new(Faulty::new());
    target.fail_once(last, Failure::Before);
    let failed = copied(&source, &target).await.expect_err("it was not made");
    assert!(matches!(failed, CopyError::Target(_)), "{failed}");
    let whole = copied(&source, &target).await.expect("a copy");
    assert_copy(&source, &target, &whole).await;
}

#[tokio::test]
async fn a_source_that_fails_at_any_call_is_read_again() {
    let source = source().await;
    let mut failures = 0;
    for after in 0..CALLS_MAX {
        let target = Arc::new(Faulty::new());
        source.fail(after, Failure::Before);
        let first = copied(&source, &target).await;
        if !source.mend() {
            break;
        }
        failures += 1;
        first.expect_err("a call failed");
        let copied = copied(&source, &target).await.expect("a copy");
        assert_copy(&source, &target, &copied).await;
    }
    assert!((5..CALLS_MAX).contains(&failures), "{failures}");
}

#[tokio::test]
async fn what_is_there_is_not_written_again() {
    let (source, target) = (source().await, Arc::new(Faulty::new()));
    assert_eq!(prepared(&source, &target).await.expect("a pass"), 12);
    assert_eq!(prepared(&source, &target).await.expect("a pass"), 0);
    put(&*source, "/05", "third", None).await;
    delete(&*source, "/06").await;
    // Two differ, and none is so old that the source has its revision now.
    let copied = copied(&source, &target).await.expect("a copy");
    assert!(copied.changes <= 3, "{copied:?}");
    assert_copy(&source, &target, &copied).await;
}

/// A key may be equal by chance after its value changed there and back; the revision that the target gave it stands for
/// something else in the source by then.
#[tokio::test]
async fn keys_whose_revision_the_source_has_reached_are_written_once_more() {
    let (source, target) = (source().await, Arc::new(Faulty::new()));
    prepared(&source, &target).await.expect("a pass");
    let reached = revision(&*target).await + 5;
    while revision(&*source).await < reached {
        put(&*source, "/03", "other", None).await;
    }
    put(&*source, "/03", "second", None).await;
    let copied = copied(&source, &target).await.expect("a copy");
    assert_eq!(copied.changes, 12);
    assert_copy(&source, &target, &copied).await;
}

#[tokio::test]
async fn a_source_that_is_written_to_is_read_until_it_is_not() {
    for after in 0..CALLS_OF_A_PASS {
        let (source, target) = (source().await, Arc::new(Faulty::new()));
        source.intrude(Intruder {
            after,
            again: false,
        });
        let copied = copied(&source, &target).await.expect("a copy");
        assert_copy(&source, &target, &copied).await;
    }
    let (source, target) = (source().await, Arc::new(Faulty::new()));
    source.intrude(Intruder {
        after: 0,
        again: true,
    });
    let written = copied(&source, &target).await.expect_err("it never rests");
    assert!(
        matches!(written, CopyError::SourceWritten { .. }),
        "{written}"
    );
}

#[tokio::test]
async fn a_key_whose_lease_ends_meanwhile_is_counted() {
    let (source, target) = (source().await, Arc::new(Faulty::new()));
    prepared(&source, &target).await.expect("a pass");
    target.end_lease(LeaseId(7)).await;
    let copied = copied(&source, &target).await.expect("a copy");
    assert_eq!((copied.keys, copied.changes), (12, 1));
    assert_copy(&source, &target, &copied).await;

    let target = Arc::new(Faulty::new());
    prepared(&source, &target).await.expect("a pass");
    source.end_lease(LeaseId(7)).await;
    let copied = self::copied(&source, &target).await.expect("a copy");
    assert_eq!(copied.keys, 11);
    assert_copy(&source, &target, &copied).await;
}

#[tokio::test]
async fn a_source_without_keys_is_copied() {
    let (source, target) = (Arc::new(Faulty::new()), Arc::new(Faulty::new()));
    let copied = copied(&source, &target).await.expect("a copy");
    assert_copy(&source, &target, &copied).await;
}

/// The history of the writes that raise the revision is dropped, and so are the versions before.
#[tokio::test]
async fn a_revision_far_ahead_is_reached() {
    let (source, target) = (Arc::new(Faulty::new()), Arc::new(Faulty::new()));
    put(&*source, "/a", "1", None).await;
    for _ in 0..1_000 {
        put(&*source, "/b", "1", None).await;
    }
    let copied = copied(&source, &target).await.expect("a copy");
    assert!(copied.target_revision > copied.revision + 2, "{copied:?}");
    assert_copy(&source, &target, &copied).await;
}
