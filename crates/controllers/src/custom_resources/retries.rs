//! The backoff of definitions that failed: each by itself, doubling with every failure.

use std::collections::BTreeMap;
use std::time::Duration;

use ringwatch::clock::Instant;

/// Pause after the first failure of a definition, and the maximum pause.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The definitions that failed, by name.
#[derive(Debug, Default)]
pub(super) struct Retries {
    failed: BTreeMap<String, Retry>,
}

/// The next attempt at a definition that failed.
#[derive(Debug)]
struct Retry {
    due: Instant,
    /// The time between the last failure and `due`.
    pause: Duration,
}

impl Retries {
    /// Returns true if an attempt may be made now.
    pub(super) fn is_due(&self, name: &str, now: Instant) -> bool {
        self.failed.get(name).is_none_or(|retry| retry.due <= now)
    }

    /// Records a failure, and returns the time until the next attempt.
    pub(super) fn failed(&mut self, name: &str, now: Instant) -> Duration {
        let before = self.failed.get(name);
        let pause = before.map_or(PAUSE.0, |retry| (retry.pause * 2).min(PAUSE.1));
        let due = now + pause;
        self.failed.insert(name.to_owned(), Retry { due, pause });
        pause
    }

    /// Forgets the failures of a definition: it succeeded, has changed or is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.failed.remove(name);
    }

    /// Forgets all failures.
    pub(super) fn clear(&mut self) {
        self.failed.clear();
    }

    /// Returns when a definition whose last attempt failed is tried again; `None` if it did not fail.
    pub(super) fn due(&self, name: &str) -> Option<Instant> {
        self.failed.get(name).map(|retry| retry.due)
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;

    #[test]
    fn each_waits_longer_after_every_failure_but_not_for_ever() {
        let now = Clock::real().now();
        let mut retries = Retries::default();
        let pauses: Vec<u64> = (0..8).map(|_| retries.failed("a", now).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert!(!retries.is_due("a", now + Duration::from_secs(59)));
        assert!(retries.is_due("a", now + Duration::from_secs(60)));

        assert!(retries.is_due("b", now));
        assert_eq!(retries.failed("b", now), PAUSE.0);
        assert_eq!(retries.due("b"), Some(now + PAUSE.0));

        retries.forget("a");
        assert!(retries.due("a").is_none() && retries.due("b").is_some());
        assert_eq!(retries.failed("a", now), PAUSE.0);
    }
}
