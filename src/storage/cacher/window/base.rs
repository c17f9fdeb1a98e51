//! The state from which a window begins.

use std::sync::Arc;

use super::snapshot::SnapshotMap;

/// The state before the first event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Base {
    /// The revision that the window begins after.
    pub(crate) revision: u64,
    /// The state at that revision.
    pub(crate) state: Arc<SnapshotMap>,
}
