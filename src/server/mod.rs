//! The composition root: the only place that reads flags, spawns and listens.

pub mod duration;
pub mod error;
pub mod flags;
pub mod watch_cache_sizes;
