//! Damage of a file at rest: a bit that is another, or an end that is missing. A store must be refused then, or be as
//! it was but for its last batch.

use rand::Rng;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::{Backend, KeyRange, KeyValue, RangeContent, RangeRequest};
use ringwatch_testing::disk::Disk;

use crate::store;

/// Number of damages that are tried at a time.
const TRIES: u32 = 3;
/// A batch has so many revisions at most.
const BATCH_REVISIONS_MAX: u64 = 512;

/// Damages copies of a disk, and returns what is wrong with the stores that are opened on them nevertheless.
pub(crate) async fn check(disk: &Disk, clock: &Clock) -> Vec<String> {
    let whole = disk.after_power_loss();
    let Some((revision, expected)) = content(&whole, clock, 0).await else {
        // The store itself is about to say so.
        return Vec::new();
    };
    let mut wrong = Vec::new();
    let bytes = usize::try_from(whole.size_bytes().unwrap_or(0)).unwrap_or(usize::MAX);
    for _ in 0..TRIES {
        let bit = rand::rng().random_range(0..bytes.saturating_mul(8).max(1));
        let cut = rand::rng().random_range(0..bytes.max(1));
        for (what, damaged) in [
            (format!("bit {bit}"), whole.with_flipped_bit(bit)),
            (format!("a cut at {cut}"), whole.cut_off(cut)),
        ] {
            let Some((found_revision, found)) = content(&damaged, clock, 0).await else {
                continue;
            };
            let then = match found_revision == revision {
                true => Some((revision, expected.clone())),
                false => content(&whole, clock, found_revision).await,
            };
            let is_near = found_revision + BATCH_REVISIONS_MAX >= revision;
            let is_same = then.is_some_and(|(_, then)| then == found);
            if !(is_near && is_same) {
                wrong.push(format!(
                    "damage: after {what} of {bytes} bytes the store opens at revision {found_revision}, \
                     and at {revision} without"
                ));
            }
        }
    }
    wrong
}

/// Returns the revision and the content of a store, now or at a revision; `None` if it is refused.
async fn content(disk: &Disk, clock: &Clock, revision: u64) -> Option<(u64, Vec<KeyValue>)> {
    let (store, _commits) = store::open(disk, clock.clone()).ok()?;
    let request = RangeRequest {
        range: KeyRange::prefix("/"),
        revision,
        limit: 0,
        content: RangeContent::Values,
    };
    let response = store.range(request).await.ok()?;
    Some((response.revision, response.kvs))
}
