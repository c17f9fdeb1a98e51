//! The objects that have sources of volumes.

use std::cell::Cell;

/// The object that has a volume's source.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'v> {
    /// A pod, or the template of one.
    Pod {
        /// The volume's name in it.
        volume: &'v str,
        /// The name of the pod, if it has one.
        pod: Option<&'v str>,
        is_template: bool,
        /// The bytes that are left for errors which show names of claims.
        room: &'v Cell<usize>,
    },
    /// A PersistentVolume.
    PersistentVolume {
        name: &'v str,
        /// True if it says on which nodes it is.
        has_affinity: bool,
    },
}
