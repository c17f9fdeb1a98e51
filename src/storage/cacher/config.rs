//! The configuration of a type's cache.

use super::window::event_window::WindowLimits;
use crate::storage::Versioner;

/// A type to cache.
///
/// ```
/// use ringwatch::storage::cacher::TypeConfig;
///
/// let pods = TypeConfig::new("", "pods");
/// assert_eq!(pods.prefix, "/pods/");
/// let deployments = TypeConfig::new("apps", "deployments").with_prefix("/apps/deployments/");
/// assert_eq!(deployments.resource, "deployments");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// True if lists of shards are answered by an index of the hashes, which takes about 100 bytes of memory for each
    /// object. Otherwise each object is looked at.
    pub shard_indexes: bool,
}

impl TypeConfig {
    /// Returns the configuration of a type whose keys begin with the plural resource, which has no selectable fields
    /// but name and namespace, the default limits of the window, and no index of shards.
    #[must_use]
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        let resource = resource.into();
        Self {
            group: group.into(),
            prefix: format!("/{resource}/"),
            resource,
            versioner: Versioner::default(),
            window: WindowLimits::default(),
            shard_indexes: false,
        }
    }

    /// Returns this configuration with another prefix of the type's keys, which begins and ends with a slash.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        Self { prefix, ..self }
    }

    /// Returns this configuration with another versioner.
    #[must_use]
    pub fn with_versioner(self, versioner: Versioner) -> Self {
        Self { versioner, ..self }
    }

    /// Returns this configuration with other limits of the window.
    #[must_use]
    pub fn with_window(self, window: WindowLimits) -> Self {
        Self { window, ..self }
    }

    /// Returns this configuration with or without an index of shards.
    #[must_use]
    pub fn with_shard_indexes(self, shard_indexes: bool) -> Self {
        Self {
            shard_indexes,
            ..self
        }
    }
}
