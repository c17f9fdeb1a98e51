//! Copies that are refused, for their target or for their source.

use std::sync::Arc;

use ringwatch::storage::backend::copy::{BackendSource, BackendTarget, CopyError, complete};

use super::faulty::{Faulty, Intruder};
use super::resumed::{copied, prepared};
use super::{Unseen, content, delete, keys, put};

/// More calls to the target than a copy of these tests makes.
const CALLS_MAX: u64 = 40;
/// The number of calls to the target after it is verified.
const CALLS_OF_FINISH: u64 = 3;
/// The number of calls to the target until it is known to be empty.
const CALLS_OF_BEGIN: u64 = 4;

async fn one_key() -> Arc<Faulty> {
    let source = Arc::new(Faulty::new());
    put(&*source, "/a", "1", None).await;
    put(&*source, "/b", "1", None).await;
    source
}

#[tokio::test]
async fn a_store_with_keys_is_left_alone() {
    let (source, target) = (one_key().await, Arc::new(Faulty::new()));
    put(&*target, "/other", "1", None).await;
    let before = keys(&*target).await;
    let refused = copied(&source, &target).await.expect_err("there is a key");
    assert!(
        matches!(refused, CopyError::NotEmpty { keys: 1 }),
        "{refused}"
    );
    assert_eq!(keys(&*target).await, before);
}

#[tokio::test]
async fn a_whole_copy_is_a_store_like_any_other() {
    let (source, target) = (one_key().await, Arc::new(Faulty::new()));
    copied(&source, &target).await.expect("a copy");
    let refused = copied(&source, &target).await.expect_err("it is there");
    assert!(
        matches!(refused, CopyError::NotEmpty { keys: 2 }),
        "{refused}"
    );
}

#[tokio::test]
async fn the_unfinished_copy_of_another_source_is_left_alone() {
    let (source, target) = (one_key().await, Arc::new(Faulty::new()));
    prepared(&source, &target).await.expect("a pass");
    let before = keys(&*target).await;
    let other = BackendSource::new("other".to_owned(), source.clone());
    let refused = complete(&other, &mut BackendTarget::new(target.clone()), &Unseen).await;
    let refused = refused.expect_err("another source");
    assert!(
        matches!(&refused, CopyError::OtherSource { found } if found == "source"),
        "{refused}"
    );
    assert_eq!(keys(&*target).await, before);
}

#[tokio::test]
async fn a_source_that_went_back_is_refused() {
    let (source, target) = (one_key().await, Arc::new(Faulty::new()));
    prepared(&source, &target).await.expect("a pass");
    let restored = Arc::new(Faulty::new());
    put(&*restored, "/a", "1", None).await;
    let refused = copied(&restored, &target).await.expect_err("an older one");
    assert!(
        matches!(
            refused,
            CopyError::WentBack {
                revision: 2,
                copied: 3
            }
        ),
        "{refused}"
    );
}

#[tokio::test]
async fn an_unfinished_copy_is_no_source() {
    let (source, unfinished) = (one_key().await, Arc::new(Faulty::new()));
    prepared(&source, &unfinished).await.expect("a pass");
    let refused = copied(&unfinished, &Arc::new(Faulty::new())).await;
    let refused = refused.expect_err("it is unfinished");
    assert!(matches!(refused, CopyError::Unfinished { .. }), "{refused}");
}

#[tokio::test]
async fn a_key_that_is_no_text_is_refused() {
    let source = one_key().await;
    put(&*source, "/\u{fffd}", "1", None).await;
    let refused = copied(&source, &Arc::new(Faulty::new())).await;
    let refused = refused.expect_err("a key that is no text");
    assert!(matches!(refused, CopyError::NotText { .. }), "{refused}");
}

/// Keys that another program writes or removes between passes are put right.
#[tokio::test]
async fn what_others_wrote_into_an_unfinished_copy_goes() {
    let (source, target) = (one_key().await, Arc::new(Faulty::new()));
    prepared(&source, &target).await.expect("a pass");
    put(&*target, "/a", "wrong", None).await;
    put(&*target, "/strange", "1", None).await;
    delete(&*target, "/b").await;
    let copied = copied(&source, &target).await.expect("a copy");
    assert_eq!(copied.changes, 3);
    assert_eq!(content(&*target).await, content(&*source).await);
}

/// The write of another program between a read of the target and the write of the copy is not overwritten.
#[tokio::test]
async fn a_program_that_writes_to_the_target_is_noticed() {
    let mut noticed = 0;
    for after in 0..CALLS_MAX {
        let (source, target) = (one_key().await, Arc::new(Faulty::new()));
        put(&*source, "/intruder", "1", None).await;
        target.intrude(Intruder {
            after,
            again: false,
        });
        let outcome = copied(&source, &target).await;
        let calls = target.calls();
        match outcome {
            Err(CopyError::TargetWritten { .. } | CopyError::Differs { .. }) => noticed += 1,
            // It came when the copy was verified, or is to come.
            Ok(_) if after + CALLS_OF_FINISH >= calls => continue,
            Ok(_) => {
                assert_eq!(content(&*target).await, content(&*source).await, "{after}");
                continue;
            }
            // It came to an empty store.
            Err(CopyError::NotEmpty { keys: 1 }) if after < CALLS_OF_BEGIN => {
                let left = keys(&*target).await;
                assert_eq!(left.len(), 1, "{left:?}");
                assert_eq!(left[0].value, after.to_string(), "{left:?}");
                continue;
            }
            Err(other) => panic!("{after}: {other}"),
        }
        copied(&source, &target).await.expect("a copy");
        assert_eq!(content(&*target).await, content(&*source).await);
    }
    assert!(noticed > 2, "{noticed}");
}

/// A store that is empty when it is looked at and no longer when the marker is written has its keys still.
#[tokio::test]
async fn a_key_that_comes_as_a_copy_begins_is_left_alone() {
    for after in 0..CALLS_OF_BEGIN {
        let (source, target) = (one_key().await, Arc::new(Faulty::new()));
        target.intrude(Intruder {
            after,
            again: false,
        });
        let refused = copied(&source, &target).await.expect_err("there is a key");
        assert!(
            matches!(refused, CopyError::NotEmpty { keys: 1 }),
            "{after}: {refused}"
        );
        let left = keys(&*target).await.into_iter().map(|it| it.key);
        assert_eq!(left.collect::<Vec<_>>(), ["/intruder"], "{after}");
    }
}
