//! The permissions of one subject by one binding.

use std::sync::Arc;

use super::Rule;

/// The rules of a role that a binding gives to a subject.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    /// The binding, its role and the subject, in kube-apiserver's words.
    pub(super) description: Arc<str>,
    /// The rules, or the error that the role does not exist.
    pub(super) rules: Result<Arc<[Rule]>, Arc<str>>,
}
