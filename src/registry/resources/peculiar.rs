//! What a kind does beyond the switches of [`super::generic::Generic`].

use std::fmt::Debug;

use serde_json::Value;

use crate::registry::{DeleteOptions, FieldError, Graceful, RequestContext};

/// What a kind does beyond the switches. Each method runs after (defaults: before) what the
/// switches do, and does nothing by itself.
pub(super) trait Peculiar: Debug + Send + Sync {
    /// Brings what clients may write in several ways into one, before the table of defaults.
    fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Sets what the server sets on creation.
    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        let _ = (context, object);
    }

    /// Sets or keeps what the server sets.
    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, old: &Value) {
        let _ = (context, object, old);
    }

    /// As in [`crate::registry::Strategy::is_costly`].
    fn is_costly(&self) -> bool {
        false
    }

    /// What is wrong with an object, be it new or updated.
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let _ = object;
        Vec::new()
    }

    /// What is wrong with a new object alone.
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let _ = object;
        Vec::new()
    }

    /// What is wrong with a change.
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let _ = (object, old);
        Vec::new()
    }

    /// Whether and how long deletion waits.
    fn check_graceful_delete(&self, object: &Value, options: &mut DeleteOptions) -> Graceful {
        let _ = (object, options);
        Graceful::No
    }

    /// Whether a deleted object has to stay for a reason of its own.
    fn holds_deletion(&self, object: &Value) -> bool {
        let _ = object;
        false
    }

    /// Marks an object whose deletion begins but waits.
    fn prepare_for_deletion(&self, object: &mut Value) {
        let _ = object;
    }

    /// From the storage version to the served one.
    fn to_served(&self, object: Value) -> Value {
        object
    }

    /// From the served version to the storage version.
    fn to_stored(&self, object: Value) -> Value {
        object
    }

    /// Whether the two methods above do something.
    fn converts(&self) -> bool {
        false
    }
}

/// Nothing peculiar.
impl Peculiar for () {}
