//! References of variables and files to fields of their pod, and to resources of its containers.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::quantity::Amount;
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use crate::defaults::DefaultRule::{self, Set};
use crate::defaults::Literal::Text;
use crate::validation::field::{Errors, Field};

/// The fields of its pod that a variable may refer to.
pub(super) const POD_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// The fields of its pod that a file may refer to.
pub(super) const POD_FIELDS_OF_FILES: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// The resources of a container that both may refer to.
const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// The other fields of pods that have a label.
const MORE_POD_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "spec.restartPolicy",
    "spec.schedulerName",
    "status.phase",
];

/// Defaults of a reference to a field.
pub(super) const FIELD_REF: &[DefaultRule] = &[Set("apiVersion", Text("v1"))];

/// Checks a reference to a field of the pod. Follows `validateObjectFieldSelector`.
pub(super) fn pod_field(at: &Field<'_, '_>, allowed: &[&str], errors: &mut Errors) {
    for member in ["apiVersion", "fieldPath"].map(|member| at.at(member)) {
        if member.is_empty() {
            errors.push(member.required(""));
            return;
        }
    }
    let path = at.at("fieldPath");
    let text = path.text();
    let not_converted = |why: String| path.invalid(format!("error converting fieldPath: {why}"));
    let version = at.at("apiVersion").text();
    if version != "v1" {
        errors.push(not_converted(format!("unsupported pod version: {version}")));
        return;
    }
    let subscript = text.strip_suffix("']").and_then(|it| it.split_once("['"));
    match subscript.filter(|(map, _)| !map.is_empty()) {
        Some(("metadata.annotations", key)) => blame(at, &key.to_lowercase(), errors),
        Some(("metadata.labels", key)) => blame(at, key, errors),
        Some(_) => {
            let why = format!("field label does not support subscript: {text}");
            errors.push(not_converted(why));
        }
        None => {
            // Old clients say `spec.host`.
            let known = if text == "spec.host" {
                "spec.nodeName"
            } else {
                text
            };
            if !POD_FIELDS.contains(&known) && !MORE_POD_FIELDS.contains(&known) {
                errors.push(not_converted(format!("field label not supported: {text}")));
            } else if !allowed.contains(&known) {
                errors.push(path.unsupported_value(known, allowed));
            }
        }
    }
}

fn blame(at: &Field<'_, '_>, key: &str, errors: &mut Errors) {
    let wrong = formats::label_key(key).into_iter();
    errors.extend(wrong.map(|why| at.invalid_value(Value::from(key), why)));
}

/// Checks a reference to a resource of a container; in a file it names the container. Follows
/// `validateContainerResourceFieldSelector`.
pub(super) fn resource_field(at: &Field<'_, '_>, of_file: bool, errors: &mut Errors) {
    let resource = at.at("resource");
    let name = resource.text();
    let pages = ["requests.hugepages-", "limits.hugepages-"];
    if of_file && at.at("containerName").is_empty() {
        errors.push(at.at("containerName").required(""));
    } else if name.is_empty() {
        errors.push(resource.required(""));
    } else if !RESOURCE_FIELDS.contains(&name) && !pages.iter().any(|it| name.starts_with(it)) {
        errors.push(resource.unsupported(RESOURCE_FIELDS));
    }
    divisor(at, errors);
}

/// Checks the unit in which a resource is told. Follows `validateContainerResourceDivisor`.
fn divisor(at: &Field<'_, '_>, errors: &mut Errors) {
    const BYTES: &[&str] = &[
        "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
    ];
    const BYTES_WORDS: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let divisor = at.at("divisor");
    let Some(unit) = divisor.quantity_text().parse::<Amount>().ok() else {
        return;
    };
    let resource = at.at("resource").text();
    let of = resource.split_once('.').map_or("", |(_, of)| of);
    let (units, words, what) = match of {
        "cpu" => (&["1m", "1"][..], "1m and 1", "cpu"),
        "memory" => (BYTES, BYTES_WORDS, "memory"),
        "ephemeral-storage" => (BYTES, BYTES_WORDS, "local ephemeral storage"),
        _ if of.starts_with("hugepages-") => (BYTES, BYTES_WORDS, "hugepages"),
        _ => return,
    };
    if !unit.is_zero() && !units.contains(&unit.to_string().as_str()) {
        let why = format!("only divisor's values {words} are supported with the {what} resource");
        errors.push(divisor.invalid_value(resource, why));
    }
}
