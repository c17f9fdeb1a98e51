//! The configuration of a type's cache.

use super::window::WindowLimits;
use crate::storage::Versioner;

/// A type to cache.
#[derive(Clone, Debug)]
pub struct TypeConfig {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural resource.
    pub resource: String,
    /// Where the type's keys lie, without the store's own prefix: `/pods/`.
    pub prefix: String,
    /// The versioner that reads stored objects.
    pub versioner: Versioner,
    /// How much history is kept.
    pub window: WindowLimits,
}
