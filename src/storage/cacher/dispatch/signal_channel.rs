//! The bounded channel from the dispatcher to a watcher, which carries the numbers of events and bookmarks.

use crate::ring::channel;

/// Maximum number of signals in a watcher's channel; the next event overflows it. A watcher that keeps up has one or
/// two; 32 take 256 bytes, and a longer burst is read from the window just as well.
pub(crate) const SIGNALS_MAX: usize = 32;

/// The dispatcher's half of a watcher's channel.
pub(crate) type Sender = channel::Sender<SIGNALS_MAX>;

/// The watcher's half of its channel.
pub(crate) type Receiver = channel::Receiver<SIGNALS_MAX>;
