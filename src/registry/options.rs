//! The options of writes.

/// How to create.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Do everything but store.
    pub dry_run: bool,
}

/// How to update.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Do everything but store.
    pub dry_run: bool,
    /// Create the object if there is none, whatever the strategy says (server-side apply).
    pub force_allow_create: bool,
}

/// How to delete: metav1.DeleteOptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Do everything but delete.
    pub dry_run: bool,
    /// How long to wait; `None` for the type's own period.
    pub grace_period_seconds: Option<i64>,
    /// The uid that the object must have.
    pub precondition_uid: Option<String>,
    /// The resource version that the object must have.
    pub precondition_resource_version: Option<String>,
    /// The old way to say that dependents are kept.
    pub orphan_dependents: Option<bool>,
    /// What happens to dependents.
    pub propagation_policy: Option<PropagationPolicy>,
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropagationPolicy {
    /// They are kept.
    Orphan,
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
}
