//! The objects and the newest events of a type, as immutable data that readers share.

pub(crate) mod base;
pub(crate) mod event;
pub(crate) mod event_window;
pub(crate) mod field_index;
pub(crate) mod shard_index;
pub(crate) mod snapshot;
pub(crate) mod view;
