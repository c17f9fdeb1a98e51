//! The schedule of bookmarks: buckets of one second, and one ticker for all watchers.
//!
//! A bookmark is sent every minute, and once shortly before the watch's deadline, so that a client resumes from a
//! recent version. No client needs it on the exact second, so watchers that are due in the same second share a bucket
//! and cost nothing until it is due.
//!
//! A bucket holds numbers of watchers, and a number may belong to another watcher by the time the bucket is due. So the
//! second in which each watcher is due is kept as well, and an entry in any other bucket is ignored.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Instant;

/// Maximum time that a watch goes without a bookmark.
pub(crate) const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// The time before the [deadline](crate::storage::ListOptions::deadline) of a watch at which its last bookmark is
/// sent.
pub const BOOKMARK_BEFORE_DEADLINE: Duration = Duration::from_secs(2);

/// The granularity of the schedule.
pub(crate) const BOOKMARK_TICK: Duration = Duration::from_secs(1);

/// The times at which watchers are due for a bookmark.
#[derive(Debug)]
pub(crate) struct BookmarkSchedule {
    /// The clock's reading that seconds are counted from.
    origin: Instant,
    /// Numbers of watchers, by the second (counted from the origin) in which they are due. The entry of a watcher that
    /// was dropped stays until its bucket is due.
    buckets: BTreeMap<u64, Vec<u32>>,
    /// The watchers that want bookmarks, by number; `None` for the others.
    wanted: Vec<Option<NextBookmark>>,
}

/// The next bookmark of one watcher.
#[derive(Clone, Copy, Debug)]
struct NextBookmark {
    bookmarks: Bookmarks,
    /// The second in which the next one is due; `None` after the last.
    due: Option<u64>,
}

impl BookmarkSchedule {
    /// Makes a schedule without watchers.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            origin: now,
            buckets: BTreeMap::new(),
            wanted: Vec::new(),
        }
    }

    /// Schedules a watcher that came at `now`.
    pub(crate) fn add(&mut self, number: u32, bookmarks: Bookmarks, now: Instant) {
        let at = number as usize;
        if self.wanted.len() <= at {
            self.wanted.resize(at + 1, None);
        }
        let due = bookmarks.next(now).map(|at| self.second(at));
        self.wanted[at] = Some(NextBookmark { bookmarks, due });
        if let Some(due) = due {
            self.buckets.entry(due).or_default().push(number);
        }
    }

    /// Removes a watcher from the schedule.
    pub(crate) fn forget(&mut self, number: u32) {
        if let Some(wanted) = self.wanted.get_mut(number as usize) {
            *wanted = None;
        }
    }

    /// Removes all watchers from the schedule.
    pub(crate) fn clear(&mut self) {
        self.buckets.clear();
        self.wanted.clear();
    }

    /// Returns true if a watcher wants bookmarks at all.
    pub(crate) fn wants(&self, number: u32) -> bool {
        matches!(self.wanted.get(number as usize), Some(Some(_)))
    }

    /// Calls `send` for every watcher that is due, and schedules its next bookmark. Watchers that were due together
    /// mostly are so again, and are moved together.
    pub(crate) fn take_due(&mut self, now: Instant, mut send: impl FnMut(u32)) {
        let later = self.buckets.split_off(&(self.second(now) + 1));
        let due = std::mem::replace(&mut self.buckets, later);
        for (second, mut numbers) in due {
            // A number that was reassigned within a second is in its bucket twice; only the first entry is still due by
            // the time it is looked at.
            numbers.retain(|&number| {
                let due = self.reschedule(number, second, now);
                if due {
                    send(number);
                }
                due
            });
            let due = |number: &u32| self.wanted[*number as usize].and_then(|it| it.due);
            for together in numbers.chunk_by(|one, other| due(one) == due(other)) {
                if let Some(due) = together.first().and_then(due) {
                    self.buckets.entry(due).or_default().extend(together);
                }
            }
        }
    }

    /// Schedules a watcher's next bookmark. Returns false if the entry in a second's bucket is outdated: it belonged to
    /// an earlier watcher of the same number.
    fn reschedule(&mut self, number: u32, second: u64, now: Instant) -> bool {
        let origin = self.origin;
        match self.wanted.get_mut(number as usize) {
            Some(Some(wanted)) if wanted.due == Some(second) => {
                let next = wanted.bookmarks.next(now);
                wanted.due = next.map(|at| self::second(origin, at));
                true
            }
            _ => false,
        }
    }

    /// Returns how many entries the buckets have, those of dropped watchers included.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.buckets.values().map(Vec::len).sum()
    }

    fn second(&self, at: Instant) -> u64 {
        second(self.origin, at)
    }
}

/// Returns the whole seconds from an origin to an instant.
fn second(origin: Instant, at: Instant) -> u64 {
    at.saturating_duration_since(origin).as_secs()
}

/// The bookmarks that a watch wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bookmarks {
    /// The instant at which the watch will be ended; `None` if none is set.
    pub(crate) deadline: Option<Instant>,
}

impl Bookmarks {
    /// Returns when the next bookmark is due: in a minute, or shortly before the deadline. `None` once the last one has
    /// been sent.
    fn next(self, now: Instant) -> Option<Instant> {
        let periodic = now + BOOKMARK_PERIOD;
        let Some(deadline) = self.deadline else {
            return Some(periodic);
        };
        let last = deadline.checked_sub(BOOKMARK_BEFORE_DEADLINE)?;
        // A bucket is taken up to a second early: a deadline nearer than that has had its bookmark.
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

    #[test]
    fn a_number_that_was_given_anew_is_named_once() {
        let now = Clock::real().now();
        let open = Bookmarks { deadline: None };
        let mut schedule = BookmarkSchedule::new(now);
        schedule.add(7, open, now);
        schedule.forget(7);
        schedule.add(7, open, now);
        let mut named = Vec::new();
        schedule.take_due(now + BOOKMARK_PERIOD, |number| named.push(number));
        assert_eq!(named, [7]);
        assert_eq!(schedule.entries(), 1);
    }

    #[test]
    fn watchers_that_were_due_together_are_due_next_as_each_wants() {
        let now = Clock::real().now();
        let seconds = |seconds| now + Duration::from_secs(seconds);
        let open = Bookmarks { deadline: None };
        let timed = Bookmarks {
            deadline: Some(seconds(100)),
        };
        let mut schedule = BookmarkSchedule::new(now);
        for (number, bookmarks) in [(1, open), (2, timed), (3, open), (4, open)] {
            schedule.add(number, bookmarks, now);
        }
        let mut due = |second| {
            let mut named = Vec::new();
            schedule.take_due(seconds(second), |number| named.push(number));
            named.sort_unstable();
            named
        };
        assert_eq!(due(60), [1, 2, 3, 4]);
        assert_eq!(due(98), [2]);
        assert_eq!(due(120), [1, 3, 4]);
    }

    #[test]
    fn a_schedule_that_is_cleared_names_nobody() {
        let now = Clock::real().now();
        let mut schedule = BookmarkSchedule::new(now);
        schedule.add(0, Bookmarks { deadline: None }, now);
        assert!(schedule.wants(0));
        schedule.clear();
        assert!(!schedule.wants(0));
        assert_eq!(schedule.entries(), 0);
    }
}
