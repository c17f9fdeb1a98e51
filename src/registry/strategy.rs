//! How a type is written.

use std::any::Any;
use std::fmt::Debug;

use serde_json::Value;

use super::custom_resources::schema::StructuralSchema;
use super::{DeleteOptions, FieldError, RequestContext};
use crate::meta::Object;

/// Prepares and checks what is written to one type, or to one subresource of it.
///
/// Every method has the answer of a type without peculiarities, so that a strategy says only what
/// is peculiar. The store calls them in the order of kube-apiserver's BeforeCreate, BeforeUpdate
/// and BeforeDelete; objects are in the storage version.
pub trait Strategy: Any + Send + Sync + Debug {
    /// Fills in what clients may leave out. Runs before every other method on all that is written.
    fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Returns true if the bytes of an object in the store show that it lacks a default. Such objects are given
    /// their defaults when they are read.
    fn lacks_defaults(&self, object: &Object) -> bool {
        let _ = object;
        false
    }

    /// The members of an object that its schema does not know, as dotted paths. They are dropped when
    /// it is written; here they are told for clients that want to know.
    fn unknown_fields(&self, object: &Value) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// Takes away what may not be set on creation (status), and sets what the server sets.
    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        let _ = (context, object);
    }

    /// Returns true if the size of an object does not tell what checking it costs, as with expressions and patterns. Then
    /// it is not done where other requests wait.
    fn is_costly(&self) -> bool {
        false
    }

    /// What is wrong with a new object, beyond its metadata.
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let _ = object;
        Vec::new()
    }

    /// What to tell the client about a new object.
    fn warnings_on_create(&self, object: &Value) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// What names look like.
    fn name_rule(&self) -> NameRule {
        NameRule::DnsSubdomain
    }

    /// Brings an object that passed validation into its canonical form.
    fn canonicalize(&self, object: &mut Value) {
        let _ = object;
    }

    /// Whether PUT creates what does not exist.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Whether PUT without a resource version overwrites whatever there is.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// Keeps what this request may not change, and sets what the server sets (generation).
    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, old: &Value) {
        let _ = (context, object, old);
    }

    /// What is wrong with an update, beyond the metadata.
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let _ = (object, old);
        Vec::new()
    }

    /// What to tell the client about an update.
    fn warnings_on_update(&self, object: &Value, old: &Value) -> Vec<String> {
        let _ = (object, old);
        Vec::new()
    }

    /// Whether and how long deletion waits; may set the grace period in the options.
    fn check_graceful_delete(
        &self,
        context: &RequestContext,
        object: &Value,
        options: &mut DeleteOptions,
    ) -> Graceful {
        let _ = (context, object, options);
        Graceful::No
    }

    /// What deletion does with dependents when neither the client nor a finalizer says.
    fn default_garbage_collection(&self) -> GarbageCollection {
        GarbageCollection::DeleteDependents
    }

    /// Whether a deletion is answered with the object, rather than with a Status about it.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// Whether an object whose deletion has begun stays for a reason of its own, besides
    /// `metadata.finalizers` and its grace period. It goes with the update that ends this.
    fn holds_deletion(&self, object: &Value) -> bool {
        let _ = object;
        false
    }

    /// Marks an object whose deletion begins but waits; its `deletionTimestamp` is set already.
    fn prepare_for_deletion(&self, object: &mut Value) {
        let _ = object;
    }

    /// Turns an object of the storage version into the served version.
    fn to_served(&self, object: Value) -> Value {
        object
    }

    /// Turns an object of the served version into the storage version.
    fn to_stored(&self, object: Value) -> Value {
        object
    }

    /// Whether the two methods above do something; if not, stored bytes are served as they are.
    fn converts(&self) -> bool {
        false
    }

    /// Whether the two methods know all versions of the type; if not, its objects exist in the version in
    /// which they are asked for alone, as far as a strategy is concerned.
    fn knows_other_versions(&self) -> bool {
        true
    }

    /// The schema by which objects are written, if they are custom resources.
    fn structural_schema(&self) -> Option<&StructuralSchema> {
        None
    }

    /// The strategy of a subresource through which the object is written; `None` if there is no
    /// such subresource.
    fn subresource(&self, name: &str) -> Option<&dyn Strategy> {
        let _ = name;
        None
    }
}

/// Whether a deletion waits for a grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graceful {
    /// The type knows no grace periods.
    No,
    /// It waits for the period in the options.
    Yes,
}

/// What names look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Lower case labels joined by dots (RFC 1123).
    DnsSubdomain,
    /// One lower case label (RFC 1123).
    DnsLabel,
    /// One lower case label that begins with a letter (RFC 1035).
    Dns1035Label,
    /// Whatever is a segment of a path.
    PathSegment,
}

/// What deletion does with dependents by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GarbageCollection {
    /// The garbage collector deletes them.
    DeleteDependents,
    /// The garbage collector keeps them.
    OrphanDependents,
    /// The type never has any: no finalizer is set whatever the client says.
    Unsupported,
}
