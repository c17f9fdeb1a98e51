//! What the writer of a type publishes and everybody reads: one immutable value per batch.

use super::snapshot::SnapshotMap;
use super::window::Window;

/// A type as of one batch.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Every change of the type up to here is in. The feed's own revision may be further along.
    pub(super) revision: u64,
    /// The objects.
    pub(super) state: SnapshotMap,
    /// The events that led to them.
    pub(super) window: Window,
}

impl View {
    /// The objects as of a revision that the cache has reached; `None` if it is too old.
    pub(super) fn state_at(&self, revision: u64) -> Option<&SnapshotMap> {
        self.window.state_at(revision)
    }
}
