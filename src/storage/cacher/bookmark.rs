//! When watchers get their bookmarks: buckets of one second, one ticker for all.
//!
//! A bookmark comes every minute and once shortly before the watch's deadline, so that a client
//! comes back with a fresh version. The second matters to nobody, so watchers that are due in the
//! same second share a bucket and cost nothing until it is due.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::watchers::Registered;
use crate::clock::Instant;

/// How long a watch is without a bookmark at most.
pub(super) const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// How long before the deadline the last bookmark comes.
pub(super) const BOOKMARK_BEFORE_DEADLINE: Duration = Duration::from_secs(2);

/// How fine the schedule is.
pub(super) const BOOKMARK_TICK: Duration = Duration::from_secs(1);

/// Which watchers are due when.
#[derive(Debug)]
pub(super) struct BookmarkSchedule {
    /// The clock's reading that seconds are counted from.
    origin: Instant,
    /// By second since the origin. A watcher that is gone leaves its bucket when that is due.
    buckets: BTreeMap<u64, Vec<Weak<Registered>>>,
}

impl BookmarkSchedule {
    /// An empty schedule.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            origin: now,
            buckets: BTreeMap::new(),
        }
    }

    /// Schedules the watcher's next bookmark, if it wants one and there is time for it.
    pub(super) fn add(&mut self, now: Instant, watcher: &Arc<Registered>) {
        let Some(at) = watcher.bookmarks.and_then(|it| it.next(now)) else {
            return;
        };
        let second = self.second(at);
        self.buckets
            .entry(second)
            .or_default()
            .push(Arc::downgrade(watcher));
    }

    /// Takes out everyone who is due.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Arc<Registered>> {
        let later = self.buckets.split_off(&(self.second(now) + 1));
        let due = std::mem::replace(&mut self.buckets, later);
        due.into_values()
            .flatten()
            .filter_map(|watcher| watcher.upgrade())
            .collect()
    }

    fn second(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_secs()
    }
}

/// The bookmarks that a watch wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bookmarks {
    /// When the watch will be ended.
    pub(super) deadline: Option<Instant>,
}

impl Bookmarks {
    /// When the next one is due: in a minute, or shortly before the deadline. `None` once the last
    /// one has been.
    fn next(self, now: Instant) -> Option<Instant> {
        let periodic = now + BOOKMARK_PERIOD;
        let Some(deadline) = self.deadline else {
            return Some(periodic);
        };
        let last = deadline.checked_sub(BOOKMARK_BEFORE_DEADLINE)?;
        // A second's bucket may be due a little early: what is nearer than that has been.
        (last >= now + BOOKMARK_TICK).then(|| last.min(periodic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_bookmark_comes_every_minute_and_before_the_deadline() {
        let now = Clock::real().now();
        let seconds = |seconds| now + Duration::from_secs(seconds);
        let open = Bookmarks { deadline: None };
        assert_eq!(open.next(now), Some(seconds(60)));
        let timed = Bookmarks {
            deadline: Some(seconds(100)),
        };
        assert_eq!(timed.next(now), Some(seconds(60)));
        assert_eq!(timed.next(seconds(60)), Some(seconds(98)));
        assert_eq!(timed.next(seconds(98)), None);
    }
}
