//! The delivery of events to watches: from the dispatcher, which finds the watches that an event concerns, to the
//! stream of each watch.

pub(crate) mod attachment;
pub(crate) mod bookmark;
pub(crate) mod filter;
mod following;
pub(crate) mod index;
pub(crate) mod shard_groups;
pub(crate) mod signal_channel;
pub(crate) mod watch_cache;
pub(crate) mod watch_position;
pub(crate) mod watcher;
pub(crate) mod watchers;
