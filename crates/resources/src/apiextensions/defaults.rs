//! Defaults of the group `apiextensions.k8s.io`.
//!
//! Follows apiextensions-apiserver's pkg/apis/apiextensions/v1beta1/defaults.go, of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get_mut, list, set, text};
use serde_json::{Value, json};

use super::remember_storage_version;
use crate::defaults::DefaultRule::{self, In, Run, Set};
use crate::defaults::Literal::Int;
use crate::defaults::{is_absent, remove_empty};

pub(crate) const DEFINITION: &[DefaultRule] = &[
    Run(
        &["spec.names.singular", "spec.names.listKind"],
        name_by_the_kind,
    ),
    Run(&[], forget_nulls_of_conversion),
    Run(&["spec.conversion"], convert_nothing),
    Run(&["status.storedVersions"], store_in_the_storage_version),
    In(
        "spec.conversion.webhookClientConfig.service",
        &[Set("port", Int(443))],
    ),
];

/// Sets the singular to the kind in lower case, and the list kind to the kind followed by `List`.
fn name_by_the_kind(definition: &mut Value) {
    let kind = text(definition, "spec.names.kind").to_owned();
    if kind.is_empty() {
        return;
    }
    for (path, name) in [
        ("spec.names.singular", kind.to_lowercase()),
        ("spec.names.listKind", format!("{kind}List")),
    ] {
        if is_absent(definition, path) {
            set(definition, path, name.into());
        }
    }
}

/// Removes null members of the conversion, where null is the same as absent. Elsewhere in definitions it is not: a
/// schema may have null as a default.
fn forget_nulls_of_conversion(definition: &mut Value) {
    if let Some(conversion) = get_mut(definition, "spec.conversion") {
        remove_empty(conversion);
    }
}

/// Sets the storage version as the only stored one if there is none. The status of a new definition has no other.
fn store_in_the_storage_version(definition: &mut Value) {
    if list(definition, "status.storedVersions").is_empty() {
        remember_storage_version(definition);
    }
}

/// Sets the conversion strategy `None` if there is no conversion. A conversion without a strategy is left to
/// validation, which refuses it.
fn convert_nothing(definition: &mut Value) {
    if is_absent(definition, "spec.conversion") {
        set(definition, "spec.conversion", json!({"strategy": "None"}));
    }
}
