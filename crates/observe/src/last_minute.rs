//! Sliding figures of the last minute.

use std::collections::VecDeque;
use std::time::Duration;

use ringwatch::clock::Instant;

/// The time that a part covers, by which the minute may be longer.
const PART: Duration = Duration::from_secs(10);

/// The time that is looked back on.
const MINUTE: Duration = Duration::from_secs(60);

/// Figures of the last minute, in parts of ten seconds of which the oldest is forgotten as a whole.
#[derive(Debug)]
pub(crate) struct LastMinute<T> {
    /// Each part with its beginning, the oldest first. There are no more than the minute has.
    parts: VecDeque<(Instant, T)>,
}

impl<T> Default for LastMinute<T> {
    fn default() -> Self {
        Self {
            parts: VecDeque::new(),
        }
    }
}

impl<T: Default> LastMinute<T> {
    /// Returns the part to which something is added that happens now.
    pub(crate) fn part(&mut self, now: Instant) -> &mut T {
        let newest = self.parts.back().map(|it| it.0);
        if newest.is_none_or(|since| now.saturating_duration_since(since) >= PART) {
            self.parts.retain(|(since, _)| is_recent(*since, now));
            self.parts.push_back((now, T::default()));
        }
        let newest = self.parts.back_mut();
        &mut newest.expect("one was added if there was none").1
    }

    /// Returns the parts of the last minute, the oldest first.
    pub(crate) fn parts(&self, now: Instant) -> impl Iterator<Item = &T> {
        let recent = self.parts.iter().filter(move |it| is_recent(it.0, now));
        recent.map(|it| &it.1)
    }

    /// Returns true if nothing happened within the last minute.
    pub(crate) fn is_idle(&self, now: Instant) -> bool {
        self.parts(now).next().is_none()
    }
}

/// Returns true if a part of this beginning has not ended a minute ago.
fn is_recent(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) < MINUTE + PART
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;

    #[test]
    fn parts_are_forgotten_a_minute_after_their_end() {
        let start = Clock::real().now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut counts: LastMinute<u32> = LastMinute::default();
        assert!(counts.is_idle(at(0)));
        for seconds in [0, 9, 10, 65] {
            *counts.part(at(seconds)) += 1;
        }
        let seen = |now| counts.parts(at(now)).copied().collect::<Vec<_>>();
        assert_eq!(seen(69), [2, 1, 1]);
        assert_eq!(seen(70), [1, 1]);
        assert_eq!(seen(80), [1]);
        assert!(counts.is_idle(at(135)));
        *counts.part(at(200)) += 1;
        assert_eq!(counts.parts.len(), 1, "what is old takes no room");
    }
}
