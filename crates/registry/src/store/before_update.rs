//! Prepares and checks every update: kube-apiserver's BeforeUpdate and the steps around it.

use std::borrow::Cow;

use ringwatch::codec;
use ringwatch_apimachinery::accessor::{copy, integer, is_terminating, text};
use ringwatch_apimachinery::path::{get, set};
use ringwatch_apimachinery::validation::{
    validate_names_too, validate_object_meta, validate_object_meta_update,
};
use ringwatch_apimachinery::{Error, FieldError, NameRule};
use serde_json::Value;

use super::Store;
use crate::RequestContext;

/// The message for a client that updates an outdated object.
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Returns the old object with its quantities as the new one writes them, where they are equal; `None` if they are
/// already.
fn written_alike(old: &Value, object: &Value) -> Option<Value> {
    let word = |name: &str| old[name].as_str().unwrap_or_default();
    let kind = codec::kind(word("apiVersion"), word("kind"))?;
    codec::with_quantities_of(kind, old, object)
}

impl Store {
    /// Sets the current resource version if the object has none and its type allows that; otherwise checks that it has
    /// the current one.
    ///
    /// # Errors
    /// [`Error::Conflict`] for another version, [`Error::Invalid`] for a missing one.
    pub(super) fn check_version(
        &self,
        object: &mut Value,
        old: &Value,
        name: &str,
    ) -> Result<(), Error> {
        let versioner = self.storage.versioner();
        let version = |object| {
            versioner
                .object_resource_version(object)
                .map_err(|error| Error::Storage(error.into()))
        };
        match version(object)? {
            None if self.strategy().allow_unconditional_update() => {
                copy(object, old, "resourceVersion");
                Ok(())
            }
            // Kubernetes names the resource where the kind should be.
            None => Err(Error::Invalid {
                kind: self.resource.qualified_name(),
                name: name.to_owned(),
                errors: vec![FieldError::invalid(
                    "metadata.resourceVersion",
                    &Value::from(0),
                    "must be specified for an update",
                )],
            }),
            found if found == version(old)? => Ok(()),
            Some(_) => Err(Error::Conflict {
                resource: self.resource.qualified_name(),
                name: name.to_owned(),
                message: MODIFIED.to_owned(),
            }),
        }
    }

    /// Prepares, checks and canonicalizes the next content of an object. `of_guard` are the errors that the guard has
    /// found, `empty` the empty values in what was sent that are judged.
    ///
    /// # Errors
    /// [`Error::Invalid`] with all that is wrong.
    pub(super) fn before_update(
        &self,
        context: &RequestContext,
        object: &mut Value,
        old: &Value,
        (of_guard, empty): (Vec<FieldError>, Vec<(&str, Value)>),
    ) -> Result<(), Error> {
        // Quantities are compared by their values. A status leaves the rest of the object as it is written.
        let is_status = context.subresource == "status";
        let strategy = self.strategy_of(context);
        let prepare = |object: &mut Value, old: &Value| {
            copy(object, old, "generation");
            strategy.prepare_for_update(context, object, old);
        };
        prepare(object, old);
        let aligned = (!is_status).then(|| written_alike(old, object)).flatten();
        if let Some(aligned) = &aligned {
            // What is not the client's to change has been restored as it is stored. Only now the rest is compared.
            prepare(object, aligned);
        }
        let old = aligned.as_ref().unwrap_or(old);
        keep_system_fields(object, old);
        self.check_kind(object)?;
        // All names are judged by the rule of all kinds, and then by that of the kind, if it has one.
        let namespaced = self.resource.namespaced;
        let mut errors = validate_object_meta(object, namespaced, NameRule::PathSegment);
        errors.extend(self.wrong_finalizers(object));
        errors.extend(validate_object_meta_update(object, old));
        errors.extend(of_guard);
        let rule = strategy.name_rule_on_update();
        errors.extend(validate_names_too(object, rule, &errors));
        let mut judged = Cow::Borrowed(&*object);
        for (path, value) in empty {
            if get(&judged, path).is_none_or(Value::is_null) {
                set(judged.to_mut(), path, value);
            }
        }
        errors.extend(strategy.validate_update(&judged, old));
        if !errors.is_empty() {
            return Err(self.invalid(object, errors));
        }
        for warning in strategy.warnings_on_update(object, old) {
            context.warn(warning);
        }
        self.strategy().canonicalize(object);
        self.keep_managed_times(object, old);
        Ok(())
    }

    /// Restores the old managedFields if nothing but their times changed, so that an update which changes nothing
    /// writes nothing.
    fn keep_managed_times(&self, object: &mut Value, old: &Value) {
        let managed = &object["metadata"]["managedFields"];
        let old_managed = &old["metadata"]["managedFields"];
        if managed == old_managed
            || !differ_in_times_at_most(managed, old_managed)
            || lacks_content_of(object, old)
        {
            return;
        }
        let mut same = object.clone();
        copy(&mut same, old, "managedFields");
        // The old object may lack empty values that are written nevertheless.
        let mut before = old.clone();
        self.strategy().canonicalize(&mut before);
        if same == before {
            *object = same;
        }
    }

    /// Returns true if an update removes the last finalizer of an object that is being deleted; the object is then
    /// deleted.
    pub(super) fn deletes(&self, object: &Value, old: &Value) -> bool {
        object["metadata"]["finalizers"].is_null()
            && is_terminating(old)
            && integer(old, "deletionGracePeriodSeconds").unwrap_or(0) == 0
            && !self.strategy().holds_deletion(object)
    }
}

/// Restores the fields that only the server sets.
fn keep_system_fields(object: &mut Value, old: &Value) {
    if text(object, "uid").is_empty() {
        copy(object, old, "uid");
    }
    for member in ["creationTimestamp", "deletionTimestamp"] {
        if !text(old, member).is_empty() {
            copy(object, old, member);
        }
    }
    if integer(object, "deletionGracePeriodSeconds").is_none() {
        copy(object, old, "deletionGracePeriodSeconds");
    }
}

/// Returns true if two lists of managed fields are the same but for their times.
fn differ_in_times_at_most(managed: &Value, old: &Value) -> bool {
    let (Some(managed), Some(old)) = (managed.as_array(), old.as_array()) else {
        return false;
    };
    let same = |(entry, old): (&Value, &Value)| {
        let (Some(entry), Some(old)) = (entry.as_object(), old.as_object()) else {
            return entry == old;
        };
        let is_time = |member: &(&String, &Value)| member.0 == "time";
        let members = entry.iter().filter(|it| !is_time(it));
        members.eq(old.iter().filter(|it| !is_time(it)))
    };
    managed.len() == old.len() && managed.iter().zip(old).all(same)
}

/// Returns true if the old object has a value outside of its managed fields that an object does not have. That is
/// quickly seen in nearly all updates, for which no object needs to be copied.
fn lacks_content_of(object: &Value, old: &Value) -> bool {
    let is_missing = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("metadata", Value::Object(metadata)) => metadata.iter().any(|(name, value)| {
            name != "managedFields" && lacks(&object["metadata"][name], value)
        }),
        (name, value) => lacks(&object[name], value),
    };
    old.as_object().into_iter().flatten().any(is_missing)
}

/// Returns true if an old value is not, or not wholly, in a new one. An object may have further members, which an
/// absent or a null one may have become when the old object was brought into its canonical form.
fn lacks(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (_, Value::Null) => false,
        (Value::Object(new), Value::Object(old)) => old
            .iter()
            .any(|(name, old)| lacks(new.get(name).unwrap_or(&Value::Null), old)),
        (Value::Array(new), Value::Array(old)) => {
            new.len() != old.len() || new.iter().zip(old).any(|(new, old)| lacks(new, old))
        }
        _ => new != old,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_of_managed_fields_may_differ_in_times() {
        let entry = |manager: &str, time: &str| json!({"manager": manager, "time": time});
        let old = json!([entry("a", "1"), entry("b", "1")]);
        for (managed, expected) in [
            (old.clone(), true),
            (json!([entry("a", "2"), entry("b", "1")]), true),
            (json!([{"manager": "a"}, entry("b", "1")]), true),
            (json!([entry("b", "1"), entry("a", "1")]), false),
            (json!([entry("a", "1")]), false),
            (json!([entry("a", "1"), null]), false),
            (Value::Null, false),
        ] {
            assert_eq!(
                differ_in_times_at_most(&managed, &old),
                expected,
                "{managed}"
            );
        }
    }

    #[test]
    fn content_may_be_added_but_not_be_missing() {
        let old = json!({"metadata": {"name": "a", "managedFields": [1]}, "spec": {"list": [{"a": 1}], "gone": null}});
        for (object, expected) in [
            (old.clone(), false),
            (
                json!({"metadata": {"name": "a", "managedFields": [2]}, "spec": {"list": [{"a": 1}]}}),
                false,
            ),
            (
                json!({"metadata": {"name": "a"}, "spec": {"list": [{"a": 1, "b": 0}], "gone": 0}, "status": {}}),
                false,
            ),
            (
                json!({"metadata": {"name": "b"}, "spec": {"list": [{"a": 1}]}}),
                true,
            ),
            (
                json!({"metadata": {"name": "a"}, "spec": {"list": [{"a": 2}]}}),
                true,
            ),
            (
                json!({"metadata": {"name": "a"}, "spec": {"list": [{"a": 1}, {"a": 1}]}}),
                true,
            ),
            (json!({"metadata": {"name": "a"}}), true),
        ] {
            assert_eq!(lacks_content_of(&object, &old), expected, "{object}");
        }
    }
}
