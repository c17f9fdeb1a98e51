//! Shrinks windows when memory is short: the oldest part of the largest, again and again.
//!
//! A large window has the most to give and its clients the least to lose, since it reaches as far
//! back as several small ones. What watchers are reading now is never taken: events of the last
//! seconds stay ([`super::window`]), so a watch that keeps up is not ended for another type's sake.

use std::time::Duration;

use super::cache_writer::CacheWriter;
use crate::budget::Ledger;
use crate::clock::Instant;

/// How often windows are looked at while they owe memory. What could not be spared a moment ago can
/// be soon.
pub(super) const RELIEF_PERIOD: Duration = Duration::from_secs(1);

/// How many segments go at a time, so that changes are not kept waiting.
const RELIEF_SEGMENTS_MAX: usize = 64;

/// Shrinks windows until they owe nothing more, or have nothing to spare.
pub(super) fn shrink_windows<'a>(
    caches: impl Iterator<Item = &'a mut CacheWriter>,
    ledger: &Ledger,
    now: Instant,
) {
    let mut caches: Vec<_> = caches.collect();
    for _ in 0..RELIEF_SEGMENTS_MAX {
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
