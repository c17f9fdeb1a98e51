//! The reads of a type that wait for its cache to become fresh enough, for figures: how many, and since when.
//!
//! Only a read that has to wait comes here, so those that the cache answers at once touch no lock. There are at most as
//! many as there are requests in progress.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use crate::clock::Instant;
use crate::sync::{Mutex, MutexGuard};

/// The reads of a type that wait.
#[derive(Debug, Default)]
pub(crate) struct WaitingReads(Mutex<ReadWaiter>);

#[derive(Debug, Default)]
struct ReadWaiter {
    /// The number of the next read.
    next: u64,
    /// The instants at which reads began to wait, by their numbers; so the first has waited longest.
    begun: BTreeMap<u64, Instant>,
}

/// A read that waits until this is dropped.
#[derive(Debug)]
pub(crate) struct WaitingRead<'a> {
    all: &'a WaitingReads,
    number: u64,
}

impl WaitingReads {
    /// Counts a read that begins to wait.
    pub(crate) fn begin(&self, now: Instant) -> WaitingRead<'_> {
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.begun.insert(number, now);
        drop(waiting);
        WaitingRead { all: self, number }
    }

    /// Returns how many reads wait, and for how long the first has.
    pub(crate) fn figures(&self, now: Instant) -> (usize, Duration) {
        let waiting = self.lock();
        let first = waiting.begun.values().next();
        let longest = first.map(|begun| now.saturating_duration_since(*begun));
        (waiting.begun.len(), longest.unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, ReadWaiter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitingRead<'_> {
    fn drop(&mut self) {
        self.all.lock().begun.remove(&self.number);
    }
}
