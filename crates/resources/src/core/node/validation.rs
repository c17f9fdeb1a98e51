//! Checks of nodes.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use ringwatch_apimachinery::{FieldError, FieldErrorKind, go_json};
use serde_json::Value;

use crate::core::pod::validation::scheduling;
use crate::validation::annotation_json::{Member, structs};
use crate::validation::field::{Errors, Field};
use crate::validation::quantities;
use crate::validation::values::{cidr, network};

/// Annotation of nodes with their taints, where they were before there was a field.
const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
/// The members of a taint that are checked, with their types in Go.
const OF_TAINTS: &[Member] = &[
    ("key", "string"),
    ("value", "string"),
    ("effect", "core.TaintEffect"),
];
/// Annotation of nodes that names the controllers whose pods had better run elsewhere.
const AVOIDED: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

/// Checks a Node. Follows `ValidateNode`.
pub(crate) fn node(object: &Field<'_, '_>, errors: &mut Errors) {
    annotations(object, errors);
    taints(object, errors);
    quantities(object, errors);
    let swap = object.at("status.nodeInfo.swap.capacity");
    if swap.number().is_some_and(|bytes| bytes <= 0) {
        // Kubernetes takes it for metadata.
        let blamed = "metadata.nodeSwapStatus.capacity";
        let why = "must be greater than zero";
        errors.push(FieldError::invalid(blamed, swap.value(), why));
    }
    features(object, errors);
    networks_of_pods(object, errors);
}

/// Checks an update of a Node: most of what it has been given is immutable. Follows `ValidateNodeUpdate`.
pub(crate) fn node_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    annotations(object, errors);
    quantities(object, errors);
    features(object, errors);
    let mut seen = BTreeSet::new();
    for address in object.items("status.addresses") {
        if !seen.insert(address.value().to_string()) {
            errors.push(address.duplicate());
        }
    }
    networks_stay(object, old, errors);
    let (now, before) = (object.at("spec.providerID"), old.at("spec.providerID"));
    if !before.is_empty() && now.text() != before.text() {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(now.forbidden(why));
    }
    taints(object, errors);
    let (now, before) = (object.at("spec.externalID"), old.at("spec.externalID"));
    if now.text() != before.text() {
        errors.push(now.forbidden("may not be updated"));
    }
}

/// Checks the annotations of a node that mean something. Follows `ValidateNodeSpecificAnnotations`.
fn annotations(object: &Field<'_, '_>, errors: &mut Errors) {
    let all = object.at("metadata.annotations");
    let text = |key: &str| {
        let value = all.value().get(key).and_then(Value::as_str);
        value.filter(|it| !it.is_empty())
    };
    if let Some(text) = text(TAINTS) {
        match structs(text, "core.Taint", OF_TAINTS) {
            Ok(list) => {
                let path = format!("{}.{TAINTS}", all.field());
                scheduling::taints(&Field::named(&list, &path), errors);
            }
            Err(why) => errors.push(all.invalid_value(TAINTS, why)),
        }
    }
    if let Some(text) = text(AVOIDED) {
        match read_avoided(text) {
            Ok(list) => {
                let path = format!("{}.{AVOIDED}", all.field());
                for entry in Field::named(&list, &path).items("") {
                    avoided(&entry, errors);
                }
            }
            Err(why) => errors.push(all.at("AvoidPods").invalid_value(AVOIDED, why)),
        }
    }
}

/// Reads the entries of an annotation about controllers whose pods had better run elsewhere. The error has Go's words.
fn read_avoided(text: &str) -> Result<Value, String> {
    let object = match serde_json::from_str(text) {
        Ok(object @ (Value::Object(_) | Value::Null)) => object,
        Ok(other) => return Err(go_json::not_of_type(&other, "v1.AvoidPods")),
        Err(error) => return Err(go_json::message(&error, text.as_bytes())),
    };
    let list = object.get("preferAvoidPods").unwrap_or(&Value::Null);
    if list.is_array() || list.is_null() {
        return Ok(list.clone());
    }
    let list_type = "[]v1.PreferAvoidPodsEntry";
    Err(go_json::wrong(
        list,
        "AvoidPods",
        "preferAvoidPods",
        list_type,
    ))
}

/// Checks that an entry names a controller. Follows `validatePreferAvoidPodsEntry`.
fn avoided(entry: &Field<'_, '_>, errors: &mut Errors) {
    let owner = entry.at("podSignature.podController");
    if !owner.is_set() {
        errors.push(entry.at("PodSignature").required(""));
    } else if !owner.at("controller").is_true() {
        let blamed = entry.at("PodSignature.PodController.Controller");
        errors.push(blamed.invalid_value(false, "must point to a controller"));
    }
}

/// Checks the taints of a node, which Kubernetes takes for metadata.
fn taints(object: &Field<'_, '_>, errors: &mut Errors) {
    let mut wrong = Errors::new();
    scheduling::taints(&object.at("spec.taints"), &mut wrong);
    errors.extend(wrong.into_iter().map(|mut error| {
        error.field = error.field.replacen("spec.", "metadata.", 1);
        error
    }));
}

/// Checks the quantities in the status of a node. Follows `ValidateNodeResources`.
fn quantities(object: &Field<'_, '_>, errors: &mut Errors) {
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
}

/// Checks the features that a node has, in their order. Follows `validateNodeDeclaredFeatures`.
fn features(object: &Field<'_, '_>, errors: &mut Errors) {
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

/// Checks the networks of the pods of a node: one, or one for each IP family.
fn networks_of_pods(object: &Field<'_, '_>, errors: &mut Errors) {
    let ranges = object.at("spec.podCIDRs");
    for range in ranges.items("") {
        range.must_conform(cidr, errors);
    }
    if ranges.len() < 2 {
        return;
    }
    let all = ranges.items("").map(|it| network(it.text()));
    let all: Vec<_> = all.collect();
    if let Some(index) = all.iter().position(Option::is_none) {
        let text = ranges.items("").nth(index).map_or("", |it| it.text());
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})"
        );
        let kind = FieldErrorKind::Internal;
        errors.push(FieldError::new(kind, ranges.field(), why));
    }
    let families = all.iter().flatten().map(|(first, _)| first.is_ipv4());
    let families: Vec<bool> = families.collect();
    if !matches!((&families[..], all.len()), ([one, other], 2) if one != other) {
        errors.push(ranges.invalid("may specify no more than one CIDR for each IP family"));
    }
}

/// Checks that the networks of a node's pods stay, if it has some.
fn networks_stay(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let (now, before) = (object.at("spec.podCIDRs"), old.at("spec.podCIDRs"));
    let changed = if before.is_empty() {
        0
    } else if now.len() == before.len() {
        let pairs = now.items("").zip(before.items(""));
        pairs
            .filter(|(now, before)| now.text() != before.text())
            .count()
    } else {
        1
    };
    let why = "node updates may not change podCIDR except from \"\" to valid";
    errors.extend((0..changed).map(|_| now.forbidden(why)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::{found, found_in_change, messages};

    #[test]
    fn annotations_of_nodes_are_checked() {
        let wrong = |key: &str, value: &str| {
            let object = json!({"metadata": {"annotations": {key: value}}});
            let errors = messages(&found(node, &object));
            assert_eq!(
                messages(&found_in_change(node_update, &object, &object)),
                errors
            );
            errors
        };
        let path = "metadata.annotations";
        for (key, value, expected) in [
            (TAINTS, "", None),
            (TAINTS, r#"[{"key": "a", "effect": "NoExecute"}]"#, None),
            (
                TAINTS,
                r#"[{"key": "a"}]"#,
                Some(format!("{path}.{TAINTS}[0].effect: Required value")),
            ),
            (
                TAINTS,
                "[",
                Some(format!(
                    "{path}: Invalid value: {TAINTS:?}: unexpected end of JSON input"
                )),
            ),
            (
                AVOIDED,
                r#"{"preferAvoidPods": [{"podSignature": {"podController": {"controller": true}}}]}"#,
                None,
            ),
            (
                AVOIDED,
                r#"{"preferAvoidPods": [{}]}"#,
                Some(format!("{path}.{AVOIDED}[0].PodSignature: Required value")),
            ),
            (
                AVOIDED,
                r#"{"preferAvoidPods": [{"podSignature": {"podController": {"controller": false}}}]}"#,
                Some(format!(
                    "{path}.{AVOIDED}[0].PodSignature.PodController.Controller: Invalid value: false: must point to a controller"
                )),
            ),
            (
                AVOIDED,
                "[]",
                Some(format!(
                    "{path}.AvoidPods: Invalid value: {AVOIDED:?}: json: cannot unmarshal array into Go value of type v1.AvoidPods"
                )),
            ),
        ] {
            let expected: Vec<_> = expected.into_iter().collect();
            assert_eq!(wrong(key, value), expected, "{key} {value}");
        }
    }

    #[test]
    fn nodes_have_memory_to_swap_or_do_not_say_so() {
        let of = |bytes: i64| json!({"status": {"nodeInfo": {"swap": {"capacity": bytes}}}});
        assert_eq!(found(node, &of(1)), []);
        let why = "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero";
        assert_eq!(messages(&found(node, &of(0))), [why]);
        assert_eq!(found_in_change(node_update, &of(0), &of(0)), []);
    }

    #[test]
    fn networks_of_pods_are_set_once() {
        let of = |ranges: &[&str]| json!({"spec": {"podCIDRs": ranges}});
        let old = of(&["10.0.0.0/24", "fd00::/64"]);
        for (new, changes) in [
            (&["10.0.0.0/24", "fd00::/64"][..], 0),
            (&["10.0.0.0/24"], 1),
            (&["10.0.0.0/24", "fd01::/64"], 1),
            (&["10.0.1.0/24", "fd01::/64"], 2),
        ] {
            let errors = found_in_change(node_update, &of(new), &old);
            assert_eq!(errors.len(), changes, "{new:?}");
        }
        let broken = messages(&found(node, &of(&["10.0.0.0/24", "x"])));
        assert_eq!(
            broken[1..],
            [
                "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[1]: <nil> (invalid CIDR address: x)",
                "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"x\"]: may specify no more than one CIDR for each IP family",
            ]
        );
    }
}
