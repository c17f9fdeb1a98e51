//! Copies that are refused, for their target or for their source.

use std::sync::Arc;

use ringwatch::storage::backend::copy::{BackendSource, BackendTarget, CopyError, complete};

use super::faulty::{Faulty, Intruder};
use super::resumed::{copied, prepared};
use super::{Unseen, content, delete, keys, put};

/// More calls to the target than a copy of these tests makes.
const CALLS_MAX: u64 = 40;

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
        match copied(&source, &target).await {
            Err(CopyError::TargetWritten { .. } | CopyError::Differs { .. }) => noticed += 1,
            // It came to an empty store, or when the copy was whole.
            Ok(_) | Err(CopyError::NotEmpty { .. }) => continue,
            Err(other) => panic!("{after}: {other}"),
        }
        copied(&source, &target).await.expect("a copy");
        assert_eq!(content(&*target).await, content(&*source).await);
    }
    assert!(noticed > 2, "{noticed}");
}
