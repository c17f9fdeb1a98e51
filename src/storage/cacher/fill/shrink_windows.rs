//! Shrinks windows when the memory budget is short: the oldest segment of the largest, repeatedly.
//!
//! A large window has the most memory to free and its clients the least to lose, since it reaches as far back as
//! several small ones. Events of the last seconds are never dropped ([`crate::storage::cacher::window::event_window`]),
//! so that a watch which keeps up is not ended for another type's sake.

use std::time::Duration;

use super::cache_writer::CacheWriter;
use crate::budget::Ledger;
use crate::clock::Instant;

/// The interval between attempts while windows exceed the budget. Events that were too young a moment ago can be
/// dropped soon.
pub(crate) const SHRINK_PERIOD: Duration = Duration::from_secs(1);

/// Maximum number of segments that are dropped at a time, so that changes do not wait long.
const SHRINK_SEGMENTS_MAX: usize = 64;

/// Shrinks windows until they are within the budget or nothing more can be dropped.
pub(crate) fn shrink_windows<'a>(
    caches: impl Iterator<Item = &'a mut CacheWriter>,
    ledger: &Ledger,
    now: Instant,
) {
    let mut caches: Vec<_> = caches.collect();
    for _ in 0..SHRINK_SEGMENTS_MAX {
        if ledger.owed_by_windows() == 0 {
            return;
        }
        let spare = caches.iter_mut().filter(|it| it.spare_bytes(now) > 0);
        let Some(largest) = spare.max_by_key(|it| it.spare_bytes(now)) else {
            return;
        };
        largest.shrink_window(now);
    }
}
