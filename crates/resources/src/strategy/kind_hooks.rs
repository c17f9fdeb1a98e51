//! The hook for behaviour of a kind that the switches of [`super::generic::Generic`] cannot express.

use std::fmt::Debug;

use ringwatch_apimachinery::FieldError;
use ringwatch_registry::{DeleteOptions, Graceful, RequestContext};
use serde_json::Value;

/// Behaviour of a kind beyond the switches. It is narrower than [`ringwatch_registry::Strategy`] on purpose: no hook
/// overrides what a switch decides. Each method runs after the switches, `default` before them, and does nothing unless
/// a kind implements it.
pub(crate) trait KindHooks: Debug + Send + Sync {
    /// Normalizes fields that clients may write in several ways, before the table of defaults is applied.
    fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Removes the labels that a new object got by default, as
    /// [`ringwatch_registry::Strategy::forget_default_labels`] does.
    fn forget_default_labels(&self, object: &mut Value) {
        let _ = object;
    }

    /// Sets fields of a new object that the server owns.
    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        let _ = (context, object);
    }

    /// Sets or keeps fields of an updated object that the server owns.
    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, old: &Value) {
        let _ = (context, object, old);
    }

    /// Returns true if the cost of validation is not bounded by the object's size, as
    /// [`ringwatch_registry::Strategy::is_costly`] does.
    fn is_costly(&self) -> bool {
        false
    }

    /// Validates an object, be it new or updated, and returns the errors of its fields.
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let _ = object;
        Vec::new()
    }

    /// Validates a new object and returns the errors that only new objects can have.
    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let _ = object;
        Vec::new()
    }

    /// Validates an update and returns the errors of changed fields.
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let _ = (object, old);
        Vec::new()
    }

    /// Decides whether deletion waits for a grace period, and may set that period in the options.
    fn check_graceful_delete(&self, object: &Value, options: &mut DeleteOptions) -> Graceful {
        let _ = (object, options);
        Graceful::No
    }

    /// Returns true if an object whose deletion has begun must stay for a reason other than finalizers and grace
    /// period.
    fn holds_deletion(&self, object: &Value) -> bool {
        let _ = object;
        false
    }

    /// Marks an object whose deletion begins but has to wait.
    fn prepare_for_deletion(&self, object: &mut Value) {
        let _ = object;
    }

    /// Returns the warnings for the client that writes an object, which was another one before an update.
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        let _ = (object, old);
        Vec::new()
    }

    /// Converts an object from the storage version to the served version.
    fn to_served(&self, object: Value) -> Value {
        object
    }

    /// Converts an object from the served version to the storage version.
    fn to_stored(&self, object: Value) -> Value {
        object
    }

    /// Returns true if `to_served` and `to_stored` change objects.
    fn converts(&self) -> bool {
        false
    }
}

/// The behaviour of kinds for which the switches suffice.
impl KindHooks for () {}
