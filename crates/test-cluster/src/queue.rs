//! The queue of what a controller has to look at: each key once, and never the same one twice at the same time.
//!
//! A key that is added while it is looked at is due again afterwards. One whose look failed, or that has to be looked
//! at again, waits longer each time, until it is done with.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Duration;

use ringwatch::clock::Instant;

/// The pause before the second look at a key.
const PAUSE_FIRST: Duration = Duration::from_millis(10);

/// Keys that wait, and those that are looked at.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    waiting: BTreeSet<(Instant, K)>,
    keys: HashMap<K, KeyState>,
}

/// The state of a key that waits or is looked at.
#[derive(Clone, Copy, Debug)]
struct KeyState {
    /// The time at which it is due; `None` while it is looked at.
    due: Option<Instant>,
    /// True if it was added while it is looked at.
    again: bool,
    /// Number of times that it had to be looked at again.
    repeats: u32,
}

impl<K: Clone + Debug + Eq + Hash + Ord> Queue<K> {
    pub(crate) fn new() -> Self {
        Self {
            waiting: BTreeSet::new(),
            keys: HashMap::new(),
        }
    }

    /// Adds a key that is due now.
    pub(crate) fn add(&mut self, key: K, now: Instant) {
        let new = KeyState {
            due: None,
            again: false,
            repeats: 0,
        };
        match self.keys.get_mut(&key) {
            Some(state) if state.due.is_none() => state.again = true,
            Some(state) => {
                let state = *state;
                self.wait(key, state, now);
            }
            None => self.wait(key, new, now),
        }
    }

    /// Takes the key that has been due the longest; `None` if none is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<K> {
        let (due, _) = self.waiting.first()?;
        if *due > now {
            return None;
        }
        let (_, key) = self.waiting.pop_first()?;
        if let Some(state) = self.keys.get_mut(&key) {
            state.due = None;
            state.again = false;
        }
        Some(key)
    }

    /// Returns when the next key is due; `None` if none waits.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waiting.first().map(|(due, _)| *due)
    }

    /// Notes that a key that was taken is done with, unless it was added meanwhile.
    pub(crate) fn done(&mut self, key: K, now: Instant) {
        match self.keys.remove(&key) {
            Some(state) if state.again => self.add(key, now),
            _ => {}
        }
    }

    /// Notes that a key that was taken is done with until this time.
    pub(crate) fn done_until(&mut self, key: K, due: Instant, now: Instant) {
        if let Some(mut state) = self.keys.get(&key).copied() {
            state.repeats = 0;
            let due = if state.again { now } else { due };
            self.wait(key, state, due);
        }
    }

    /// Notes that a key that was taken is to be looked at again, after a pause that doubles each time, up to `longest`.
    pub(crate) fn repeat(&mut self, key: K, longest: Duration, now: Instant) {
        let Some(mut state) = self.keys.get(&key).copied() else {
            return;
        };
        let pause = PAUSE_FIRST.saturating_mul(1 << state.repeats.min(20));
        state.repeats = state.repeats.saturating_add(1);
        let due = if state.again {
            now
        } else {
            now + pause.min(longest)
        };
        self.wait(key, state, due);
    }

    /// Has a key wait until a time, or until the earlier one until which it waits already.
    fn wait(&mut self, key: K, mut state: KeyState, due: Instant) {
        let due = match state.due {
            Some(before) if before <= due => return,
            Some(before) => {
                self.waiting.remove(&(before, key.clone()));
                due
            }
            None => due,
        };
        state.due = Some(due);
        state.again = false;
        self.waiting.insert((due, key.clone()));
        self.keys.insert(key, state);
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;

    use super::*;

    const LONGEST: Duration = Duration::from_secs(1);

    #[test]
    fn a_key_is_looked_at_once_however_often_it_is_added() {
        let now = Clock::real().now();
        let mut queue = Queue::new();
        queue.add("a", now);
        queue.add("a", now);
        assert_eq!((queue.take(now), queue.take(now)), (Some("a"), None));
        queue.done("a", now);
        assert_eq!((queue.take(now), queue.next_due()), (None, None));
    }

    #[test]
    fn a_key_that_is_added_while_it_is_looked_at_is_due_again_afterwards() {
        let now = Clock::real().now();
        let mut queue = Queue::new();
        for end in [
            |queue: &mut Queue<&'static str>, now| queue.done("a", now),
            |queue: &mut Queue<&'static str>, now| queue.repeat("a", LONGEST, now),
            |queue: &mut Queue<&'static str>, now| queue.done_until("a", now + LONGEST, now),
        ] {
            queue.add("a", now);
            assert_eq!(queue.take(now), Some("a"));
            queue.add("a", now);
            assert_eq!(queue.take(now), None, "not twice at the same time");
            end(&mut queue, now);
            assert_eq!(queue.take(now), Some("a"));
            queue.done("a", now);
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_end_when_it_is_done() {
        let now = Clock::real().now();
        let mut queue = Queue::new();
        queue.add("a", now);
        let mut pauses = Vec::new();
        let mut at = now;
        for _ in 0..9 {
            assert_eq!(queue.take(at), Some("a"));
            queue.repeat("a", LONGEST, at);
            let due = queue.next_due().expect("it waits");
            pauses.push((due - at).as_millis());
            at = due;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(queue.take(at), Some("a"));
        queue.done("a", at);
        queue.add("a", at);
        assert_eq!(queue.take(at), Some("a"));
        queue.repeat("a", LONGEST, at);
        assert_eq!(queue.next_due(), Some(at + PAUSE_FIRST));
    }

    #[test]
    fn a_key_that_waits_is_due_at_once_when_it_is_added() {
        let now = Clock::real().now();
        let mut queue = Queue::new();
        queue.add("a", now);
        queue.take(now);
        queue.done_until("a", now + LONGEST, now);
        assert_eq!(queue.take(now), None);
        queue.add("a", now);
        assert_eq!(queue.take(now), Some("a"));
        queue.done("a", now);
        assert_eq!(queue.next_due(), None);
    }
}
