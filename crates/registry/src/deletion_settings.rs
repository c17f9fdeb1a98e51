//! The settings of deletions that a server has for all its resources.

/// The settings of deletions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionSettings {
    /// Number of objects of a collection that are deleted at a time; at least 1.
    pub collection_workers: usize,
    /// True if deletions set and remove the finalizers by which the garbage collector orphans dependents or deletes
    /// them first.
    pub garbage_collection: bool,
}

impl Default for DeletionSettings {
    fn default() -> Self {
        Self {
            collection_workers: 1,
            garbage_collection: true,
        }
    }
}
