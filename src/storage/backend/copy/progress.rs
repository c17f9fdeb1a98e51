//! The progress of a copy, for whoever shows it.

/// A phase of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPhase {
    /// The target's revision is raised; the steps are revisions.
    Raise,
    /// Keys are compared and written; the steps are keys.
    Copy,
    /// Keys are read back; the steps are keys.
    Verify,
}

/// An observer of a copy.
pub trait CopyProgress: Send + Sync {
    /// Begins a phase of so many steps.
    fn begin(&self, phase: CopyPhase, steps: u64);

    /// Tells that more steps of the phase are done.
    fn advance(&self, steps: u64);
}
