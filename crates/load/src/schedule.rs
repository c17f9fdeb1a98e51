//! The schedule of writes: when each is due.
//!
//! Latency counts from these times, not from when a write was sent: a server that stalls delays the
//! writes behind it too, and each of them is charged with that.

use std::time::Duration;

use super::time::{Instant, nanos, now, wall_nanos};

/// Due times of writes, by monotonic and by wall time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    start: Instant,
    start_wall: u64,
    interval: Duration,
    /// The number of writes that are due at once.
    at_once: u32,
}

impl Schedule {
    /// Returns the schedule of one write after the other, `rate` per second, beginning now.
    pub(crate) fn steady(rate: f64) -> Self {
        Self::bursts(1, Duration::from_secs_f64(1.0 / rate))
    }

    /// Returns the schedule of so many writes at once, every `interval`, beginning now.
    pub(crate) fn bursts(at_once: u32, interval: Duration) -> Self {
        Self {
            start: now(),
            start_wall: wall_nanos(),
            interval,
            at_once,
        }
    }

    /// Returns the same schedule, beginning now.
    pub(crate) fn again(self) -> Self {
        Self::bursts(self.at_once, self.interval)
    }

    /// Returns how many writes a rate per second makes in a time, rounded up.
    pub(crate) fn writes(rate: f64, duration: Duration) -> u64 {
        (duration.as_secs_f64() * rate).ceil() as u64
    }

    /// Returns when a write is due, by its number: for sleeping, and for its stamp, in nanoseconds since 1970. The
    /// first is due an interval from the start.
    pub(crate) fn due(&self, write: u64) -> (Instant, u64) {
        let turn = write / u64::from(self.at_once) + 1;
        let since = self.interval.mul_f64(turn as f64);
        (self.start + since, self.start_wall + nanos(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_depend_on_nothing_but_the_schedule() {
        let steady = Schedule::steady(100.0);
        let (first, first_wall) = steady.due(0);
        let (later, later_wall) = steady.due(1_000);
        assert_eq!(later - first, Duration::from_secs(10));
        assert_eq!(later_wall - first_wall, 10_000_000_000);
    }

    #[test]
    fn writes_of_a_burst_are_due_at_once() {
        let bursts = Schedule::bursts(64, Duration::from_secs(1));
        assert_eq!(bursts.due(0), bursts.due(63));
        let (before, _) = bursts.due(63);
        let (after, _) = bursts.due(64);
        assert_eq!(after - before, Duration::from_secs(1));
    }
}
