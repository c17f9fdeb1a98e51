//! The configuration of a type's cache.

use super::window::event_window::WindowLimits;
use crate::storage::Versioner;

/// A type to cache.
#[derive(Clone, Debug)]
pub struct TypeConfig {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural resource.
    pub resource: String,
    /// The prefix of the type's keys, without the store's own prefix: `/pods/`.
    pub prefix: String,
    /// The versioner that decodes stored objects.
    pub versioner: Versioner,
    /// The limits of the window of events.
    pub window: WindowLimits,
    /// True if lists of shards are answered by an index of the hashes, which takes about 100 bytes of memory for each object. Otherwise
    /// each object is looked at.
    pub shard_indexes: bool,
}
