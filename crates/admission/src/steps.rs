//! The steps of admission.

/// A step of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionStep {
    /// Plugins change the object.
    Admit,
    /// Plugins refuse what it has become.
    Validate,
}

impl AdmissionStep {
    /// Returns the name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::Validate => "validate",
        }
    }
}
