//! Checks of PersistentVolumeClaims.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, keep, remove};
use ringwatch_apimachinery::validation::formats;
use serde_json::{Value, json};

use super::data_source::normalize;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::selector_by_later_rule;
use crate::validation::later_rules::{CLAIM_VALUES, SOURCE_GROUPS};
use crate::validation::quantities::{basic, is_native, positive};

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

const CLASS: &str = "spec.storageClassName";
const ATTRIBUTES: &str = "spec.volumeAttributesClassName";
/// The annotation with the class of a claim, from before there was a field.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

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
    selector_by_later_rule(&spec.at("selector"), CLAIM_VALUES, errors);
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
        let alike = |it: &&str| source.at(it).value() == reference.at(it).value();
        if !members.iter().all(alike) {
            errors.push(spec.invalid_value(json!({}), "must match dataSourceRef"));
        }
    }
    spec.at("volumeAttributesClassName")
        .may_conform(formats::dns_subdomain, errors);
}

pub(super) fn access_modes(modes: &Field<'_, '_>, errors: &mut Errors) {
    let (mut alone, mut others) = (false, false);
    for mode in modes.items("") {
        if !ACCESS_MODES.contains(&mode.text()) {
            let mut error = mode.unsupported(ACCESS_MODES);
            error.field = modes.field();
            errors.push(error);
        } else if mode.text() == "ReadWriteOncePod" {
            alone = true;
        } else {
            others = true;
        }
    }
    if alone && others {
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
    let mut wrong = Errors::new();
    group.may_conform(formats::dns_subdomain, &mut wrong);
    let wrong = wrong.into_iter();
    errors.extend(wrong.map(|it| it.by_later_rule(SOURCE_GROUPS)));
}

/// Checks an update of the status of a PersistentVolumeClaim: what its volume has, and how its growth goes on. Follows
/// `ValidatePersistentVolumeClaimStatusUpdate`.
pub(crate) fn claim_status(claim: &Value, _old: &Value) -> Errors {
    let claim = Field::root(claim);
    let mut errors = Errors::new();
    for (_, quantity) in claim.members("status.capacity") {
        basic(&quantity, &mut errors);
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
            basic(&quantity, &mut errors);
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
    if get(was, "spec.volumeName").is_none() {
        drop(remove(&mut same, "spec.volumeName"));
    }
    if may_get_class(claim, old, errors) {
        drop(remove(&mut same, CLASS));
    }
    let bound = claim.at("status.phase").text() == "Bound";
    if bound {
        if get(&same, "spec.resources.requests").is_some() {
            keep(&mut same, was, "spec.resources.requests.storage");
        }
        keep(&mut same, was, ATTRIBUTES);
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
    attributes_stay(claim, old, errors);
}

/// Returns true if a claim without a class gets one that it may have: that in its annotation, where classes were
/// before there was a field, or any one if it has no annotation. Adds an error if the annotation changes but for
/// that. Follows `validateStorageClassUpgradeFromAnnotation` and `validateStorageClassUpgradeFromNil`.
fn may_get_class(claim: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) -> bool {
    let annotation = |claim: &Field<'_, '_>| {
        let annotations = get(claim.value(), "metadata.annotations");
        annotations
            .and_then(|it| it.get(OLD_CLASS))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let (was, now) = (annotation(old), annotation(claim));
    let class = claim.at(CLASS);
    let is_new = class.is_set() && !old.at(CLASS).is_set();
    let is_same = was.as_deref() == Some(class.text());
    let moves = is_new && is_same && (now.is_none() || now == was);
    if !moves && now.as_deref().unwrap_or_default() != was.as_deref().unwrap_or_default() {
        let annotations = claim.at("metadata.annotations");
        let shown = now.unwrap_or_default();
        let error = annotations
            .at(OLD_CLASS)
            .invalid_value(shown, "field is immutable");
        errors.push(error);
    }
    is_new && (is_same || was.is_none())
}

/// Checks that a claim whose volume has got attributes by a class keeps some class.
fn attributes_stay(claim: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let class = claim.at(ATTRIBUTES);
    let is_current = old.at("status.currentVolumeAttributesClassName").is_set();
    if !is_current || class.value() == old.at(ATTRIBUTES).value() {
        return;
    }
    let what = match (class.is_set(), class.is_empty()) {
        (false, _) => "nil",
        (true, true) => "empty string",
        (true, false) => return,
    };
    let why = format!(
        "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    );
    errors.push(class.forbidden(why));
}
