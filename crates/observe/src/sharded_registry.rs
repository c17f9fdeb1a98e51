//! A registry of entries under numbers that are not reused, in several shards.
//!
//! Entries are divided among several maps, so that those who add and remove entries seldom wait for each other, or for
//! somebody who reads them all.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use ringwatch::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// The number of maps.
const SHARDS: usize = 16;

/// A registry of entries under numbers.
#[derive(Debug)]
pub(crate) struct ShardedRegistry<T> {
    next: AtomicU64,
    shards: [Mutex<HashMap<u64, Arc<T>>>; SHARDS],
}

impl<T> Default for ShardedRegistry<T> {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(0),
            shards: Default::default(),
        }
    }
}

impl<T> ShardedRegistry<T> {
    /// Adds an entry, which is made when its number is known, and returns both.
    pub(crate) fn add(&self, make: impl FnOnce(u64) -> T) -> (u64, Arc<T>) {
        // Relaxed: a number, which orders nothing.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(make(number));
        self.shard(number).insert(number, Arc::clone(&entry));
        (number, entry)
    }

    /// Removes an entry.
    pub(crate) fn remove(&self, number: u64) {
        self.shard(number).remove(&number);
    }

    /// Returns an entry; `None` if it was removed.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<T>> {
        self.shard(number).get(&number).cloned()
    }

    /// Returns all entries, in no particular order.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let mut all = Vec::new();
        for shard in 0..SHARDS as u64 {
            all.extend(self.shard(shard).values().cloned());
        }
        all
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        let shard = &self.shards[(number % SHARDS as u64) as usize];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
