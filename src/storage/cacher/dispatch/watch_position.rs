//! The place of a watch as others see it: how many events it has not looked at.
//!
//! A live watch stores nothing for this. Its channel tells what it has not taken, and is looked at when somebody asks.
//! Only a watch that reads the window, or its initial state, stores its cursor, since its channel is not in use then.

use std::sync::{Arc, PoisonError};

use super::signal_channel::SIGNALS_MAX;
use super::watch_cache::WatchCache;
use crate::ring::channel::Observer;
use crate::storage::{WatchLag, WatchProgress};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// The cursor that is stored for a live watch.
const LIVE: u64 = u64::MAX;

/// The bits below the stored cursor: the lowest is set if the channel has overflowed.
const CURSOR_SHIFT: u32 = 1;

/// The place of a watch, which the watch and those who look at it share.
#[derive(Debug)]
pub(crate) struct WatchPosition {
    cache: Arc<WatchCache>,
    /// The channel of the watch, or of the one that it follows.
    channel: Mutex<Observer<SIGNALS_MAX>>,
    /// The cursor of a watch that reads the window or its initial state, or [`LIVE`].
    cursor: AtomicU64,
}

impl WatchPosition {
    /// Creates the place of a watch that begins at a cursor.
    pub(crate) fn new(cache: Arc<WatchCache>, channel: Observer<SIGNALS_MAX>, cursor: u64) -> Self {
        Self {
            cache,
            channel: Mutex::new(channel),
            cursor: AtomicU64::new(cursor << CURSOR_SHIFT),
        }
    }

    /// Notes the cursor of the watch, which reads the window because its channel has overflowed if `overflowed`.
    pub(crate) fn reads(&self, cursor: u64, overflowed: bool) {
        let stored = cursor << CURSOR_SHIFT | u64::from(overflowed);
        // Relaxed: a figure by itself, which orders nothing; as all others here.
        self.cursor.store(stored, Ordering::Relaxed);
    }

    /// Notes that the watch follows its channel from now on.
    pub(crate) fn is_live(&self) {
        self.cursor.store(LIVE, Ordering::Relaxed);
    }

    /// Notes that the events of the watch come through another channel than before.
    pub(crate) fn has_channel(&self, channel: Observer<SIGNALS_MAX>) {
        *self.channel() = channel;
    }

    fn channel(&self) -> MutexGuard<'_, Observer<SIGNALS_MAX>> {
        // It is replaced as a whole, so poison is ignored.
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchProgress for WatchPosition {
    fn of_type(&self) -> (&str, &str) {
        let config = &self.cache.config;
        (&config.group, &config.resource)
    }

    fn lag(&self) -> WatchLag {
        let stored = self.cursor.load(Ordering::Relaxed);
        let (next, parked) = if stored == LIVE {
            let backlog = self.channel().backlog();
            (backlog.oldest, backlog.overflowed)
        } else {
            (Some(stored >> CURSOR_SHIFT), stored & 1 != 0)
        };
        let end = self.cache.view().end();
        WatchLag {
            events: next.map_or(0, |next| end.saturating_sub(next)),
            parked,
        }
    }
}
