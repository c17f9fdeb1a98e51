//! Keeps managed fields readable through mutating admission: all managers would lose their fields if a webhook or a
//! policy left an entry that cannot be read. Follows `managedFieldsValidatingAdmissionController` of Kubernetes 1.36,
//! which looks at them once, when all plugins have changed the object.

use ringwatch_apimachinery::accessor::remove;
use ringwatch_apply::validate_managed_fields;
use ringwatch_registry::RequestContext;
use serde_json::Value;

/// The warning about managed fields that mutating admission has made unreadable, with the reason behind it.
const UNREADABLE: &str = ".metadata.managedFields was in an invalid state after admission; this could be caused by an \
     outdated mutating admission controller; please fix your requests: ";

/// The managed fields of an object from before the first webhook or policy that changed it. Writes that none of them
/// changes copy nothing: no other plugin touches managed fields.
#[derive(Debug, Default)]
pub(super) enum ManagedFieldsBefore {
    /// No webhook or policy has changed the object.
    #[default]
    Unchanged,
    /// The managed fields that the object had; none if it had none.
    Kept(Option<Value>),
}

impl ManagedFieldsBefore {
    /// Keeps the managed fields of the object as it is before a change, if it is the first one.
    pub(super) fn keep(&mut self, object: &Value) {
        if matches!(self, Self::Unchanged) {
            *self = Self::Kept(managed_fields(object).cloned());
        }
    }

    /// Gives the object these managed fields again, and warns the client, if those that it has now cannot be read.
    pub(super) fn restore(self, context: &RequestContext, object: &mut Value) {
        let Self::Kept(before) = self else {
            return;
        };
        if managed_fields(object) == before.as_ref() {
            return;
        }
        if let Err(why) = validate_managed_fields(object) {
            match before {
                Some(before) => object["metadata"]["managedFields"] = before,
                None => remove(object, "managedFields"),
            }
            context.warn(format!("{UNREADABLE}{why}"));
        }
    }
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}
