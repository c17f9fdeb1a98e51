//! Checks of nodes and namespaces.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

pub(crate) mod table;

use std::cmp::Ordering;
use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use super::pod::validation::scheduling::taints;
use crate::validation::field::{Errors, Field};
use crate::validation::quantities;
use crate::validation::values::{cidr, network};

/// The finalizers of namespaces that need no prefix.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// Checks a Node. Follows `ValidateNode` in pkg/apis/core/validation.
pub(crate) fn node(object: &Field<'_, '_>, errors: &mut Errors) {
    let mut wrong = Errors::new();
    taints(&object.at("spec.taints"), &mut wrong);
    // Kubernetes takes them for metadata.
    errors.extend(wrong.into_iter().map(|mut error| {
        error.field = error.field.replacen("spec.", "metadata.", 1);
        error
    }));
    node_resources(object, errors);
    let ranges = object.at("spec.podCIDRs");
    let mut seen = BTreeSet::new();
    for range in ranges.items("") {
        range.must_conform(cidr, errors);
        if !seen.insert(range.text()) {
            errors.push(range.duplicate());
        }
    }
    let families = ranges.items("").filter_map(|it| network(it.text()));
    let families: Vec<bool> = families.map(|(first, _)| first.is_ipv4()).collect();
    if ranges.len() > 1 && !matches!(families[..], [one, other] if one != other) {
        errors.push(ranges.invalid("may specify no more than one CIDR for each IP family"));
    }
}

/// Checks the quantities and the features in the status of a Node. Follows `ValidateNodeResources` and
/// `validateNodeDeclaredFeatures` in pkg/apis/core/validation.
pub(super) fn node_resources(object: &Field<'_, '_>, errors: &mut Errors) {
    for list in ["status.capacity", "status.allocatable"] {
        for (resource, quantity) in object.members(list) {
            let mut wrong = Errors::new();
            quantities::amount(resource, &quantity, &mut wrong);
            errors.extend(wrong.into_iter().map(|mut error| {
                error.field = format!("{list}.{resource}");
                error
            }));
        }
    }
    let mut last: Option<&str> = None;
    for feature in object.items("status.declaredFeatures") {
        let name = feature.text();
        match last.map(|last| last.cmp(name)) {
            Some(Ordering::Equal) => errors.push(feature.duplicate_of(name)),
            Some(Ordering::Greater) => {
                errors.push(feature.invalid("list must be sorted alphabetically"));
            }
            _ => {}
        }
        last = Some(name);
        feature.must_conform(feature_name, errors);
    }
}

/// Returns the error in the name of a feature that a node has: segments of letters and digits, of which the first
/// begins with a capital letter.
fn feature_name(name: &str) -> Vec<String> {
    const BYTES_MAX: usize = 253;
    let is_segment = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic())
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let shown = serde_json::json!(name);
    if name.len() > BYTES_MAX {
        vec![format!(
            "invalid feature name {shown}: must be no more than {BYTES_MAX} characters"
        )]
    } else if name.starts_with(|c: char| c.is_ascii_uppercase()) && name.split('/').all(is_segment)
    {
        Vec::new()
    } else {
        vec![format!(
            "invalid feature name {shown}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
        )]
    }
}

/// Checks an update of a Node: most of what it has been given is immutable. Follows `ValidateNodeUpdate` in
/// pkg/apis/core/validation.
pub(crate) fn node_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for address in object.items("status.addresses") {
        if !seen.insert(address.value().to_string()) {
            errors.push(address.duplicate());
        }
    }
    for (path, name) in [
        ("spec.podCIDRs", "podCIDR"),
        ("spec.providerID", "providerID"),
    ] {
        let (now, before) = (object.at(path), old.at(path));
        if !before.is_empty() && now.value() != before.value() {
            let why = format!("node updates may not change {name} except from \"\" to valid");
            errors.push(now.forbidden(why));
        }
    }
    let (now, before) = (object.at("spec.externalID"), old.at("spec.externalID"));
    if now.text() != before.text() {
        errors.push(now.forbidden("may not be updated"));
    }
}

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
