//! The metadata in templates of claims, of volumes and of devices.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::validation::validate_annotations;
use serde_json::Value;

use crate::validation::field::{Errors, Field};
use crate::validation::labels::labels;

/// The members that templates must not have, in the order in which Kubernetes looks, and their names in errors.
const NOT_OF_TEMPLATES: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

/// Checks the metadata of a template of claims, of which annotations and labels alone may be set. Follows
/// `ValidateTemplateObjectMeta`.
pub(crate) fn template_metadata(metadata: &Field<'_, '_>, errors: &mut Errors) {
    let annotations = metadata.at("annotations");
    errors.extend(validate_annotations(
        annotations.value(),
        &annotations.field(),
    ));
    labels(&metadata.at("labels"), errors);
    for (member, shown) in NOT_OF_TEMPLATES {
        let is_zero = match metadata.at(member).value() {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            // That of Go's pointers is nil.
            other => *other == 0 && member != "deletionGracePeriodSeconds",
        };
        if !is_zero {
            errors.push(metadata.at(shown).forbidden("cannot be set"));
        }
    }
}
