//! The rules by which objects of a type are defaulted, validated and changed when they are written.

use std::any::Any;
use std::fmt::Debug;

use ringwatch::codec::RequiredValue;
use ringwatch::meta::Object;
use ringwatch_apimachinery::{FieldError, NameRule};
use ringwatch_apply::MergeSchema;
use serde_json::Value;

use super::{DeleteOptions, RequestContext};

/// Prepares and validates the writes of one type, or of one subresource of it.
///
/// Every method has a default for ordinary types, so that a strategy implements only differences. The store calls them
/// in the order of kube-apiserver's BeforeCreate, BeforeUpdate and BeforeDelete; objects are in the storage version.
pub trait Strategy: Any + Send + Sync + Debug {
    /// Sets the defaults of absent fields. Runs before every other method, on every write.
    fn default(&self, object: &mut Value) {
        let _ = object;
    }

    /// Returns the dotted paths of the lists of which an empty one is not the same as none.
    fn told_if_empty(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the dotted paths of the lists and maps of which an empty one is not the same as none to the checks of an
    /// update. To all else it is: nobody manages it, and it is not stored.
    fn judged_if_empty(&self) -> &'static [&'static str] {
        &[]
    }

    /// Sets the defaults of absent fields of an object that server-side apply has merged, instead of [`Self::default`].
    /// A null that the schema of a custom resource refuses stays, so that validation refuses it.
    fn default_applied(&self, object: &mut Value) {
        self.default(object);
    }

    /// Sets the defaults of absent fields of an object that admission has changed, instead of [`Self::default`]. What
    /// the schema of a custom resource does not know stays until [`Self::prepare_to_store`].
    fn default_admitted(&self, object: &mut Value) {
        self.default(object);
    }

    /// Drops what [`Self::default_admitted`] has left of an object that webhooks or policies have changed: the members
    /// of a custom resource that its schema does not know. Runs after every other method, and only for such objects:
    /// all others have lost these members with their defaults.
    fn prepare_to_store(&self, object: &mut Value) {
        let _ = object;
    }

    /// Returns the values that every object has which was given its defaults. An object in the store that lacks one is
    /// given its defaults when it is read.
    fn wanted(&self) -> Vec<RequiredValue> {
        Vec::new()
    }

    /// Returns true if the bytes of an object in the store show that it lacks a default that [`Self::wanted`] cannot
    /// express.
    fn lacks_defaults(&self, object: &Object) -> bool {
        let _ = object;
        false
    }

    /// Returns the members of an object that its schema does not know, as dotted paths. They are dropped when
    /// it is written; this reports them for the field validation that a client may ask for.
    ///
    /// # Errors
    /// The text about a part that cannot be decoded, such as the metadata of an object inside.
    fn unknown_fields(&self, object: &Value) -> Result<Vec<String>, String> {
        let _ = object;
        Ok(Vec::new())
    }

    /// Removes the labels that a new object got by default, so that [`Self::prepare_for_create`] decides on them. Runs
    /// after mutating admission, if the client gave none.
    fn forget_default_labels(&self, object: &mut Value) {
        let _ = object;
    }

    /// Removes fields that clients may not set on creation (status), and sets those of the server.
    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        let _ = (context, object);
    }

    /// Returns true if the cost of validating an object is not bounded by its size, as with expressions and patterns.
    /// Such validation runs on the threads for large work.
    fn is_costly(&self) -> bool {
        false
    }

    /// Validates a new object, without its metadata, and returns the errors of its fields.
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        let _ = object;
        Vec::new()
    }

    /// Returns true if the metadata of a new object is only looked at when nothing else is wrong with it, as in
    /// kube-apiserver where a kind's own validation leaves it out.
    fn judges_metadata_last(&self) -> bool {
        false
    }

    /// Returns the warnings for the client that creates an object.
    fn warnings_on_create(&self, object: &Value) -> Vec<String> {
        let _ = object;
        Vec::new()
    }

    /// Returns the syntax that `metadata.name` must have.
    fn name_rule(&self) -> NameRule {
        NameRule::DnsSubdomain
    }

    /// Returns the syntax that `metadata.generateName` must have when an object is updated, beside that of a segment of
    /// a URL path.
    fn name_rule_on_update(&self) -> NameRule {
        NameRule::PathSegment
    }

    /// Brings an object that passed validation into its canonical form.
    fn canonicalize(&self, object: &mut Value) {
        let _ = object;
    }

    /// Returns true if PUT creates an object that does not exist.
    fn allow_create_on_update(&self) -> bool {
        false
    }

    /// Returns true if PUT without a resource version overwrites the object, whatever its version.
    fn allow_unconditional_update(&self) -> bool {
        true
    }

    /// Restores fields that this request may not change, and sets those of the server (generation).
    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, old: &Value) {
        let _ = (context, object, old);
    }

    /// Validates an update, without the metadata, and returns the errors of its fields.
    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        let _ = (object, old);
        Vec::new()
    }

    /// Returns the warnings for the client that updates an object.
    fn warnings_on_update(&self, object: &Value, old: &Value) -> Vec<String> {
        let _ = (object, old);
        Vec::new()
    }

    /// Decides whether deletion waits for a grace period, and may set that period in the options.
    fn check_graceful_delete(
        &self,
        context: &RequestContext,
        object: &Value,
        options: &mut DeleteOptions,
    ) -> Graceful {
        let _ = (context, object, options);
        Graceful::No
    }

    /// Returns the treatment of dependents upon deletion when neither the client nor a finalizer says.
    fn default_garbage_collection(&self) -> GarbageCollection {
        GarbageCollection::DeleteDependents
    }

    /// Returns the warning for a deletion whose options leave the default treatment of dependents; `None` for no
    /// warning.
    fn warning_on_default_deletion(&self) -> Option<&'static str> {
        None
    }

    /// Returns true if a deletion is answered with the object, rather than with a Status about it.
    fn returns_deleted_object(&self) -> bool {
        false
    }

    /// Returns true if an object whose deletion has begun must stay for a reason other than `metadata.finalizers` and
    /// its grace period, such as a namespace's `spec.finalizers`. It is removed with the update that ends this.
    fn holds_deletion(&self, object: &Value) -> bool {
        let _ = object;
        false
    }

    /// Marks an object whose deletion begins but waits; its `deletionTimestamp` is set already.
    fn prepare_for_deletion(&self, object: &mut Value) {
        let _ = object;
    }

    /// Converts an object from the storage version to the served version.
    fn to_served(&self, object: Value) -> Value {
        object
    }

    /// Converts an object from the served version to the storage version.
    fn to_stored(&self, object: Value) -> Value {
        object
    }

    /// Returns true if `to_served` and `to_stored` change objects; if not, stored bytes are served as they are.
    fn converts(&self) -> bool {
        false
    }

    /// Returns true if `to_served` and `to_stored` know all versions of the type. If not, as with conversion by a
    /// webhook, the strategy sees objects in no version but the requested one.
    fn knows_other_versions(&self) -> bool {
        true
    }

    /// Returns how the fields of a custom resource merge; `None` for built-in kinds.
    fn merge_schema(&self) -> Option<&dyn MergeSchema> {
        None
    }

    /// Returns the strategy for writes of the object through a subresource; `None` if there is no such subresource.
    fn subresource(&self, name: &str) -> Option<&dyn Strategy> {
        let _ = name;
        None
    }
}

/// The decision of [`Strategy::check_graceful_delete`]: immediate deletion, or one that waits for a grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graceful {
    /// The type has no grace periods: the object is deleted at once.
    No,
    /// Deletion waits for the grace period in the options.
    Yes,
}

/// The treatment of a deleted object's dependents by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GarbageCollection {
    /// The garbage collector deletes them.
    DeleteDependents,
    /// The garbage collector keeps them.
    OrphanDependents,
    /// The type has no dependents: no finalizer is set whatever the client requests.
    Unsupported,
}
