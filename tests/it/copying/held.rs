//! Runs that are held while another run makes the copy whole.

use std::pin::pin;
use std::sync::Arc;

use futures::poll;
use ringwatch::storage::backend::copy::CopyError;

use super::faulty::Faulty;
use super::resumed::{copied, prepared};
use super::{delete, keys, put};

/// A number of keys that are written with one batch.
const ONE_BATCH: u64 = 12;
/// A number of keys that are written with two batches.
const TWO_BATCHES: u64 = 1_100;

async fn source(keys: u64) -> Arc<Faulty> {
    let source = Arc::new(Faulty::new());
    for number in 0..keys {
        put(&*source, &format!("/{number:04}"), "first", None).await;
    }
    source
}

/// Holds a pass at a call, makes the copy whole by another run, and lets the pass go on.
async fn run(source: &Arc<Faulty>, target: &Arc<Faulty>, held: &Faulty, after: u64) {
    let permits = held.hold(after);
    let mut pass = pin!(prepared(source, target));
    while !held.has_held() {
        let polled = poll!(&mut pass);
        assert!(polled.is_pending(), "{after}: {polled:?}");
        tokio::task::yield_now().await;
    }
    put(&**source, "/0003", "second", None).await;
    delete(&**source, "/0006").await;
    put(&**source, "/new", "second", None).await;
    copied(source, target).await.expect("a copy");
    // A server writes to it.
    put(&**target, "/0005", "served", None).await;
    let before = keys(&**target).await;
    permits.add_permits(1);
    let refused = pass.await.expect_err("another run has made it whole");
    assert!(
        matches!(
            refused,
            CopyError::TargetWritten { .. } | CopyError::NotEmpty { .. }
        ),
        "{after}: {refused}"
    );
    assert_eq!(keys(&**target).await, before, "{after}");
}

#[tokio::test]
async fn a_run_that_is_held_at_the_target_leaves_a_whole_copy_alone() {
    let (from, to) = (source(ONE_BATCH).await, Arc::new(Faulty::new()));
    prepared(&from, &to).await.expect("a pass");
    // The last calls are the writes of a batch, which compare their keys alone.
    for after in 0..to.calls() - ONE_BATCH {
        let (source, target) = (source(ONE_BATCH).await, Arc::new(Faulty::new()));
        run(&source, &target, &target, after).await;
    }
}

/// The calls to the source are before and between batches.
#[tokio::test]
async fn a_run_that_is_held_between_batches_leaves_a_whole_copy_alone() {
    let (from, to) = (source(TWO_BATCHES).await, Arc::new(Faulty::new()));
    let before = from.calls();
    prepared(&from, &to).await.expect("a pass");
    for after in 0..from.calls() - before {
        let (source, target) = (source(TWO_BATCHES).await, Arc::new(Faulty::new()));
        run(&source, &target, &source, after).await;
    }
}
