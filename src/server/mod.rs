//! The composition root: the only place that reads flags, spawns and listens.

pub mod certificates;
pub mod duration;
pub mod error;
pub mod flags;
pub mod kubeconfig;
pub mod private_file;
pub mod watch_cache_sizes;
