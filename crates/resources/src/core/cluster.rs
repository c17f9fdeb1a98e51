//! Checks of namespaces.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

pub(crate) mod table;

use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use crate::validation::field::{Errors, Field};

/// The finalizers of namespaces that need no prefix.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// Checks a Namespace, or its finalizers. Follows `ValidateNamespace` and `ValidateNamespaceFinalizeUpdate` in
/// pkg/apis/core/validation.
pub(crate) fn namespace(object: &Field<'_, '_>, errors: &mut Errors) {
    let list = object.at("spec.finalizers");
    for finalizer in list.items("") {
        namespace_finalizer(finalizer.text(), &list, errors);
    }
}

/// Checks the finalizers of a Namespace that are written as its subresource, where each is blamed. Follows
/// `ValidateNamespaceFinalizeUpdate` in pkg/apis/core/validation.
pub(crate) fn namespace_finalize(object: &Field<'_, '_>, errors: &mut Errors) {
    for finalizer in object.items("spec.finalizers") {
        namespace_finalizer(finalizer.text(), &finalizer, errors);
    }
}

/// Checks a finalizer of a Namespace, and blames a field for it. Follows `ValidateFinalizerName`.
fn namespace_finalizer(name: &str, blamed: &Field<'_, '_>, errors: &mut Errors) {
    let wrong = formats::label_key(name).into_iter();
    errors.extend(wrong.map(|why| blamed.invalid_value(name, why)));
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(blamed.invalid_value(name, why));
    }
}

/// Checks the phase of a Namespace, which is Terminating if it is being deleted. Follows
/// `ValidateNamespaceStatusUpdate` in pkg/apis/core/validation.
pub(crate) fn namespace_status(object: &Value, _old: &Value) -> Errors {
    let object = Field::root(object);
    let (goes, phase) = (
        object.at("metadata.deletionTimestamp"),
        object.at("status.phase"),
    );
    let (expected, why) = if goes.is_set() {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    };
    if phase.text() == expected {
        return Errors::new();
    }
    let mut error = phase.invalid(why);
    error.field = "status.Phase".to_owned();
    vec![error]
}
