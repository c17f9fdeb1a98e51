//! Checks of PersistentVolumeClaims.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, keep, remove};
use ringwatch_apimachinery::validation::formats;
use serde_json::{Value, json};

use super::data_source::normalize;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::selector;
use crate::validation::quantities::{is_native, positive};

const IMMUTABLE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
/// The states in which the growth of a claim can be.
const RESIZE_STATUSES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// Checks a PersistentVolumeClaim. Follows `ValidatePersistentVolumeClaim`.
pub(crate) fn claim(claim: &Field<'_, '_>, errors: &mut Errors) {
    claim_spec(&claim.at("spec"), errors);
}

/// Checks the spec of a claim, on its own or in an ephemeral volume. Follows `ValidatePersistentVolumeClaimSpec`.
pub(super) fn claim_spec(spec: &Field<'_, '_>, errors: &mut Errors) {
    let modes = spec.at("accessModes");
    if modes.is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    selector(&spec.at("selector"), errors);
    access_modes(&modes, errors);
    let storage = spec.at("resources.requests.storage");
    let mut wrong = Errors::new();
    if storage.is_set() {
        positive(&storage, &mut wrong);
    } else {
        wrong.push(storage.required(""));
    }
    // Kubernetes leaves the requests out of the path.
    errors.extend(wrong.into_iter().map(|mut error| {
        error.field = format!("{}[storage]", spec.at("resources").field());
        error
    }));
    spec.at("storageClassName")
        .may_conform(formats::dns_subdomain, errors);
    spec.at("volumeMode").may_be_one_of(VOLUME_MODES, errors);
    for from in ["dataSource", "dataSourceRef"].map(|from| spec.at(from)) {
        if from.is_set() {
            data_source(&from, errors);
        }
    }
    let (source, reference) = (spec.at("dataSource"), spec.at("dataSourceRef"));
    let namespace = reference.at("namespace");
    namespace.may_conform(formats::dns_label, errors);
    if source.is_set() && !namespace.is_empty() {
        let why = "may not be specified when dataSourceRef.namespace is specified";
        errors.push(spec.invalid_value(json!({}), why));
    } else if source.is_set() && reference.is_set() {
        let members = ["apiGroup", "kind", "name"];
        let alike = |it: &&str| source.at(it).text() == reference.at(it).text();
        if !members.iter().all(alike) {
            errors.push(spec.invalid_value(json!({}), "must match dataSourceRef"));
        }
    }
    spec.at("volumeAttributesClassName")
        .may_conform(formats::dns_subdomain, errors);
}

pub(super) fn access_modes(modes: &Field<'_, '_>, errors: &mut Errors) {
    let mut alone = 0;
    for mode in modes.items("") {
        if !ACCESS_MODES.contains(&mode.text()) {
            let mut error = mode.unsupported(ACCESS_MODES);
            error.field = modes.field();
            errors.push(error);
        }
        alone += usize::from(mode.text() == "ReadWriteOncePod");
    }
    if alone > 0 && alone < modes.len() {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(modes.forbidden(why));
    }
}

fn data_source(from: &Field<'_, '_>, errors: &mut Errors) {
    from.at("name").must_be_set(errors);
    let kind = from.at("kind");
    kind.must_be_set(errors);
    let group = from.at("apiGroup");
    if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(from.invalid_value(kind.text(), why));
    }
    group.may_conform(formats::dns_subdomain, errors);
}

/// Checks an update of the status of a PersistentVolumeClaim: what its volume has, and how its growth goes on. Follows
/// `ValidatePersistentVolumeClaimStatusUpdate`.
pub(crate) fn claim_status(claim: &Value, _old: &Value) -> Errors {
    let claim = Field::root(claim);
    let mut errors = Errors::new();
    for (_, quantity) in claim.members("status.capacity") {
        quantity.must_not_be_a_negative_quantity(&mut errors);
    }
    let growing = claim.at("status.allocatedResourceStatuses");
    for (resource, status) in claim.members("status.allocatedResourceStatuses") {
        errors.extend(resource_of_claim(&growing, resource));
        if !RESIZE_STATUSES.contains(&status.text()) {
            errors.push(growing.unsupported_value(resource, RESIZE_STATUSES));
        }
    }
    let given = claim.at("status.allocatedResources");
    for (resource, quantity) in claim.members("status.allocatedResources") {
        let wrong = resource_of_claim(&given, resource);
        if wrong.is_empty() {
            quantity.must_not_be_a_negative_quantity(&mut errors);
        }
        errors.extend(wrong);
    }
    errors
}

/// Returns the errors in the name of a resource that a claim has: `storage` is the only one without a domain of its
/// own.
fn resource_of_claim(at: &Field<'_, '_>, resource: &str) -> Errors {
    let wrong: Errors = formats::label_key(resource)
        .into_iter()
        .map(|why| at.invalid_value(resource, why))
        .collect();
    if !wrong.is_empty() || !is_native(resource) || resource == "storage" {
        return wrong;
    }
    vec![at.unsupported_value(resource, &["storage"])]
}

/// Checks an update of a PersistentVolumeClaim: the class may be set if there is none, the volume may be set once, and
/// the size of a bound one may change. Follows `ValidatePersistentVolumeClaimUpdate`.
pub(crate) fn claim_update(claim: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let mut same = claim.value().clone();
    // The old claim may have been stored before both sources of its data were kept alike.
    let mut was = old.value().clone();
    normalize(&mut was);
    let was = &was;
    for once in ["spec.volumeName", "spec.storageClassName"] {
        if get(was, once).is_none() {
            drop(remove(&mut same, once));
        }
    }
    let bound = claim.at("status.phase").text() == "Bound";
    if bound {
        for path in [
            "spec.resources.requests.storage",
            "spec.volumeAttributesClassName",
        ] {
            if get(&same, path).is_some() {
                keep(&mut same, was, path);
            }
        }
    }
    let [before, after] = [was, &same].map(|claim| get(claim, "spec").unwrap_or(&Value::Null));
    if after != before {
        let spec = claim.at("spec");
        let difference = spec.difference(before, after);
        errors.push(spec.forbidden(format!("{IMMUTABLE}\n{difference}")));
    }
    let size = claim.at("spec.resources.requests.storage");
    let [now, before, held] = [
        size.quantity(),
        old.at("spec.resources.requests.storage").quantity(),
        old.at("status.capacity.storage").quantity(),
    ];
    let none = "0".parse().ok();
    if now < before && now <= held.or(none) {
        errors.push(size.forbidden("field can not be less than status.capacity"));
    }
    // Kubernetes leaves the spec out of the path.
    let mode = claim.at("spec.volumeMode");
    if mode.value() != old.at("spec.volumeMode").value() {
        let mut error = mode.invalid("field is immutable");
        error.field = "volumeMode".to_owned();
        errors.push(error);
    }
}
