//! Merges the batches of a stream of changes that have come by the time they are asked for.
//!
//! The cost of a batch beside its changes (a state of the map, the locks of watchers, the revision that readers wait
//! for) is then paid once for as many changes as have come since the last one: with the rate of changes the batches
//! grow, not the work.

use std::pin::Pin;

use futures::{FutureExt, StreamExt, stream};

use crate::storage::{ChangeBatch, ChangeSource, ChangeStream, StorageError};

/// The number of changes from which on a batch is not merged with the next one. Readers that wait for its first change
/// wait for all of them to be applied, which takes about a millisecond.
const MERGED_CHANGES_MAX: usize = 256;

/// Follows the changes of a source after a revision, in as few batches as they come.
///
/// # Errors
/// Those of the source.
pub(crate) async fn follow_merged(
    source: &dyn ChangeSource,
    revision: u64,
) -> Result<ChangeStream, StorageError> {
    source.follow(revision).await.map(merge_ready)
}

/// Returns a stream of the same changes in fewer batches.
fn merge_ready(batches: ChangeStream) -> ChangeStream {
    let merged = stream::unfold(batches.peekable(), async |mut batches| {
        let mut item = batches.next().await?;
        if let Ok(merged) = &mut item {
            while merged.changes.len() < MERGED_CHANGES_MAX
                && let Some(Some(Ok(next))) =
                    Pin::new(&mut batches).next_if(Result::is_ok).now_or_never()
            {
                append(merged, next);
            }
        }
        Some((item, batches))
    });
    merged.boxed()
}

fn append(merged: &mut ChangeBatch, next: ChangeBatch) {
    merged.revision = next.revision;
    merged.changes.extend(next.changes);
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc;

    use super::*;
    use crate::storage::{Change, ChangeKind};

    fn batch(revision: u64, changes: usize) -> ChangeBatch {
        let change = |_| Change {
            key: "/pods/d/a".to_owned(),
            revision,
            kind: ChangeKind::Delete,
        };
        ChangeBatch {
            revision,
            changes: (0..changes).map(change).collect(),
        }
    }

    /// Returns the revisions of the changes of each item, and its own; nothing for an error.
    async fn merged(items: Vec<Result<ChangeBatch, StorageError>>) -> Vec<Option<(usize, u64)>> {
        let merged = merge_ready(stream::iter(items).boxed());
        let seen = merged.map(|item| item.ok().map(|it| (it.changes.len(), it.revision)));
        seen.collect().await
    }

    #[tokio::test]
    async fn what_has_come_is_one_batch() {
        let items = vec![Ok(batch(3, 1)), Ok(batch(4, 2)), Ok(batch(9, 0))];
        assert_eq!(merged(items).await, [Some((3, 9))]);
    }

    #[tokio::test]
    async fn an_error_comes_after_the_changes_before_it() {
        let items = vec![
            Ok(batch(3, 1)),
            Ok(batch(4, 1)),
            Err(StorageError::WatchExpired),
            Ok(batch(5, 1)),
        ];
        assert_eq!(merged(items).await, [Some((2, 4)), None, Some((1, 5))]);
    }

    #[tokio::test]
    async fn a_batch_does_not_grow_without_bound() {
        let items = (1..=600).map(|revision| Ok(batch(revision, 1)));
        let merged = merged(items.collect()).await;
        assert_eq!(
            merged,
            [Some((256, 256)), Some((256, 512)), Some((88, 600))]
        );
    }

    #[tokio::test]
    async fn nothing_waits_for_what_has_not_come() {
        let (sender, batches) = mpsc::unbounded();
        let mut merged = merge_ready(batches.boxed());
        sender.unbounded_send(Ok(batch(3, 1))).expect("a stream");
        let first = merged.next().now_or_never().flatten();
        assert_eq!(first.expect("it has come").expect("a batch").revision, 3);
        assert!(merged.next().now_or_never().is_none());
        sender.unbounded_send(Ok(batch(4, 1))).expect("a stream");
        let second = merged.next().now_or_never().flatten();
        assert_eq!(second.expect("it has come").expect("a batch").revision, 4);
    }
}
