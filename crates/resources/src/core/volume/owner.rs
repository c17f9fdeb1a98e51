//! The objects that have sources of volumes.

/// The object that has a volume's source.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'v> {
    /// A pod, or the template of one, with the volume's name in it.
    Pod { volume: &'v str, is_template: bool },
    /// A PersistentVolume, with its name.
    PersistentVolume { name: &'v str },
}
