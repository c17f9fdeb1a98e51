//! StorageClasses, VolumeAttributesClasses, CSI drivers and their capacity, and VolumeAttachments.
//!
//! Follows pkg/apis/storage/validation/validation.go of Kubernetes 1.36.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ringwatch_apimachinery::path::remove;
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use crate::core::volume::drivers::driver_name;
use crate::core::volume::persistent_volume_validation::inline_spec;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{is_unreadable, selector_with};

/// Bounds of the lifetime of a token that a driver asks for, in seconds.
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
/// Minimum of the seconds between updates of what a node can take.
const UPDATE_PERIOD_SECONDS_MIN: i64 = 10;
/// Maximum number of parameters of a class, and of their bytes together.
const PARAMETERS_MAX: usize = 512;
const PARAMETERS_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of the name that a driver gives a node, in bytes.
const NODE_ID_BYTES_MAX: usize = 256;
/// Maximum number of bytes that are told of an attached volume, and of the message of an error.
const METADATA_BYTES_MAX: usize = 256 * 1024;
const MESSAGE_BYTES_MAX: usize = 1024;

/// Checks a StorageClass. Follows `ValidateStorageClass`.
pub(crate) fn storage_class(object: &Field<'_, '_>, errors: &mut Errors) {
    provisioner(&object.at("provisioner"), errors);
    parameters(&object.at("parameters"), errors);
    let policy = object.at("reclaimPolicy");
    // A policy is a pointer to Kubernetes. One to nothing gets no default, and is let through.
    if !policy.text().is_empty() {
        policy.may_be_one_of(&["Delete", "Retain"], errors);
    }
    object
        .at("volumeBindingMode")
        .must_point_to_one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    topologies(&object.at("allowedTopologies"), errors);
}

/// Checks where volumes may be: no two terms may be the same, but for the order. Follows `validateAllowedTopologies`.
fn topologies(terms: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for term in terms.items("") {
        let mut values_of = BTreeMap::new();
        for expression in term.items("matchLabelExpressions") {
            let key = expression.at("key");
            let mut values = BTreeSet::new();
            expression.at("values").must_be_set(errors);
            for value in expression.items("values") {
                if !values.insert(value.text()) {
                    errors.push(value.duplicate());
                }
            }
            key.must_conform(formats::label_key, errors);
            if values_of.insert(key.text(), values).is_some() {
                errors.push(key.duplicate());
            }
        }
        // Kubernetes begins with empty terms, so that none may be empty.
        if values_of.is_empty() || !seen.insert(values_of) {
            let blamed = term.at("matchLabelExpressions");
            errors.push(blamed.duplicate_of(""));
        }
    }
}

/// Checks an update of a StorageClass: parameters, provisioner, reclaim policy and binding mode are immutable. Follows
/// `ValidateStorageClassUpdate`.
pub(crate) fn storage_class_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let (parameters, before) = (object.at("parameters"), old.at("parameters"));
    // Null and an empty map are the same, but errors tell them apart.
    if !(parameters.is_empty() && before.is_empty()) {
        parameters.must_stay(&before, errors);
    }
    let provisioner = object.at("provisioner");
    if provisioner.value() != old.at("provisioner").value() {
        errors.push(provisioner.invalid("field is immutable"));
    }
    for member in ["reclaimPolicy", "volumeBindingMode"] {
        object.at(member).must_stay(&old.at(member), errors);
    }
}

fn parameters(at: &Field<'_, '_>, errors: &mut Errors) {
    let count = at.value().as_object().map_or(0, serde_json::Map::len);
    if count > PARAMETERS_MAX {
        errors.push(at.too_long(PARAMETERS_MAX));
        return;
    }
    let mut bytes = 0;
    for (name, value) in at.value().as_object().into_iter().flatten() {
        if name.is_empty() {
            errors.push(at.invalid_value("", "field can not be empty."));
        }
        bytes += name.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > PARAMETERS_BYTES_MAX {
        errors.push(at.too_long(PARAMETERS_BYTES_MAX));
    }
}

/// Checks a VolumeAttributesClass. Follows `ValidateVolumeAttributesClass`.
pub(crate) fn attributes_class(object: &Field<'_, '_>, errors: &mut Errors) {
    provisioner(&object.at("driverName"), errors);
    let parameters = object.at("parameters");
    if parameters.is_empty() {
        errors.push(parameters.required("must contain at least one key/value pair"));
    }
    self::parameters(&parameters, errors);
}

/// Checks an update of a VolumeAttributesClass: driver and parameters are immutable. Follows
/// `ValidateVolumeAttributesClassUpdate`.
pub(crate) fn attributes_class_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    for member in ["driverName", "parameters"] {
        let now = object.at(member);
        if now.value() != old.at(member).value() {
            let why = format!("updates to {member} are forbidden.");
            errors.push(now.forbidden(why));
        }
    }
}

/// Checks the name of what makes volumes, read in lower case. Follows `validateProvisioner`.
fn provisioner(name: &Field<'_, '_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(name.required(""));
        return;
    }
    let lower = name.text().to_lowercase();
    let wrong = formats::label_key(&lower).into_iter();
    errors.extend(wrong.map(|why| name.invalid_value(lower.as_str(), why)));
}

/// Checks a CSIDriver. Follows `ValidateCSIDriver`.
pub(crate) fn driver_kind(object: &Field<'_, '_>, errors: &mut Errors) {
    const GROUP_POLICIES: &[&str] = &["File", "None", "ReadWriteOnceWithFSType"];
    let spec = object.at("spec");
    spec.at("fsGroupPolicy")
        .may_be_one_of(GROUP_POLICIES, errors);
    token_requests(&spec, errors);
    let modes = ["Persistent", "Ephemeral"];
    for mode in spec.items("volumeLifecycleModes") {
        if !modes.contains(&mode.text()) {
            let mut error = mode.unsupported(&modes);
            error.field = spec.at("volumeLifecycleModes").field();
            errors.push(error);
        }
    }
    let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
    if period
        .number()
        .is_some_and(|it| it < UPDATE_PERIOD_SECONDS_MIN)
    {
        errors.push(period.invalid("must be greater than or equal to 10 seconds"));
    }
    let in_secrets = spec.at("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.at("tokenRequests").is_empty() {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(in_secrets.invalid(why));
    }
}

/// Checks the tokens that a driver asks for. Follows `validateTokenRequests`.
fn token_requests(spec: &Field<'_, '_>, errors: &mut Errors) {
    let mut audiences = BTreeSet::new();
    for request in spec.items("tokenRequests") {
        let audience = request.at("audience");
        if !audiences.insert(audience.text()) {
            errors.push(audience.duplicate_of(audience.text()));
            continue;
        }
        let expiration = request.at("expirationSeconds");
        match expiration.number() {
            Some(seconds) if seconds < TOKEN_SECONDS_MIN => {
                errors.push(expiration.invalid("may not specify a duration less than 10 minutes"));
            }
            Some(seconds) if seconds > TOKEN_SECONDS_MAX => {
                let why = "may not specify a duration larger than 2^32 seconds";
                errors.push(expiration.invalid(why));
            }
            _ => {}
        }
    }
}

/// Checks an update of a CSIDriver: the fields that pods rely on are immutable. Follows `ValidateCSIDriverUpdate`.
pub(crate) fn driver_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let (spec, was) = (object.at("spec"), old.at("spec"));
    let required = spec.at("attachRequired");
    if required.value() != was.at("attachRequired").value() {
        let mut error = required.invalid("field is immutable");
        error.field = "spec.attachedRequired".to_owned();
        errors.push(error);
    }
    let modes = spec.at("volumeLifecycleModes");
    modes.must_stay(&was.at("volumeLifecycleModes"), errors);
}

/// Checks a CSINode. Follows `ValidateCSINode`.
pub(crate) fn drivers_of_node(object: &Field<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for one in object.items("spec.drivers") {
        driver_name(&one.at("name"), errors);
        let id = one.at("nodeID");
        if id.is_empty() {
            errors.push(id.required(""));
        } else if id.text().len() > NODE_ID_BYTES_MAX {
            let why = format!("must be {NODE_ID_BYTES_MAX} characters or less");
            errors.push(id.invalid(why));
        }
        let count = one.at("allocatable.count");
        count.must_not_be_negative(errors);
        if !seen.insert(one.at("name").text()) {
            errors.push(one.at("name").duplicate());
        }
        let mut keys = BTreeSet::new();
        for key in one.items("topologyKeys") {
            let key = key.text();
            // Kubernetes blames the driver.
            if key.is_empty() {
                errors.push(one.required(""));
            }
            if !keys.insert(key) {
                errors.push(one.duplicate_of(key));
            }
            let wrong = formats::label_key(key).into_iter();
            errors.extend(wrong.map(|why| one.invalid_value(key, why)));
        }
    }
}

/// Checks an update of a CSINode: drivers are immutable but for the number of volumes that they take. Follows
/// `ValidateCSINodeUpdate`.
pub(crate) fn drivers_of_node_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let said = |driver: &Field<'_, '_>| {
        let mut all = driver.value().clone();
        drop(remove(&mut all, "allocatable"));
        all
    };
    let drivers = object.at("spec.drivers");
    let mut named: HashMap<&str, Vec<Field<'_, '_>>> = HashMap::new();
    for driver in drivers.items("") {
        named
            .entry(driver.at("name").text())
            .or_default()
            .push(driver);
    }
    for before in old.items("spec.drivers") {
        let same = named.get(before.at("name").text());
        for driver in same.into_iter().flatten() {
            let now = said(driver);
            if now != said(&before) {
                errors.push(drivers.invalid_showing(driver, &now, "field is immutable"));
            }
        }
    }
}

/// Checks a new CSIStorageCapacity. Follows `ValidateCSIStorageCapacity`.
pub(crate) fn capacity_left(object: &Field<'_, '_>, errors: &mut Errors) {
    capacity_with(object, false, errors);
}

fn capacity_with(object: &Field<'_, '_>, any_values: bool, errors: &mut Errors) {
    selector_with(&object.at("nodeTopology"), any_values, errors);
    let class = object.at("storageClassName");
    class.must_conform(formats::dns_subdomain, errors);
    object
        .at("capacity")
        .must_not_be_a_negative_quantity(errors);
}

/// Checks an update of a CSIStorageCapacity: topology and class are immutable, and a topology that could not be read
/// before may have wrong values. Follows `ValidateCSIStorageCapacityUpdate`.
pub(crate) fn capacity_left_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let any_values = is_unreadable(&old.at("nodeTopology"));
    capacity_with(object, any_values, errors);
    let topology = object.at("nodeTopology");
    topology.must_stay(&old.at("nodeTopology"), errors);
    let class = object.at("storageClassName");
    class.must_stay_text(&old.at("storageClassName"), errors);
}

/// Checks a VolumeAttachment. Follows `ValidateVolumeAttachment`.
pub(crate) fn attachment(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let attacher = spec.at("attacher");
    driver_name(&attacher, errors);
    let named = spec.at("source.persistentVolumeName");
    let inline = spec.at("source.inlineVolumeSpec");
    match (named.is_set(), inline.is_set()) {
        (false, false) => {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(spec.at("source").required(why));
        }
        (true, true) => {
            let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(spec.at("source").forbidden(why));
        }
        (true, false) if named.is_empty() => {
            errors.push(named.required("must specify non empty persistentVolumeName"));
        }
        (true, false) => {}
        (false, true) => inline_spec(&inline, errors),
    }
    spec.at("nodeName")
        .must_conform(formats::dns_subdomain, errors);
    attachment_status(&object.at("status"), errors);
    if named.is_set() {
        named.must_conform(formats::dns_subdomain, errors);
    }
}

/// Checks what is told of attaching. Follows `validateVolumeAttachmentStatus`.
fn attachment_status(status: &Field<'_, '_>, errors: &mut Errors) {
    let metadata = status.members("attachmentMetadata");
    let bytes: usize = metadata
        .map(|(name, it)| name.len() + it.text().len())
        .sum();
    if bytes > METADATA_BYTES_MAX {
        let metadata = status.at("attachmentMetadata");
        errors.push(metadata.too_long(METADATA_BYTES_MAX));
    }
    for error in ["attachError", "detachError"].map(|error| status.at(error)) {
        let message = error.at("message");
        if message.text().len() > MESSAGE_BYTES_MAX {
            // Kubernetes tells the bound of the metadata.
            errors.push(message.too_long(METADATA_BYTES_MAX));
        }
        let code = error.at("errorCode");
        if code.number().is_some_and(|it| it < 0) {
            errors.push(code.invalid("must be between 0 and 2147483647, inclusive"));
        }
    }
}

/// Checks an update of the status of a VolumeAttachment, of which kube-apiserver looks at the rest as well.
pub(crate) fn attachment_status_update(object: &Value, old: &Value) -> Errors {
    let (object, old) = (Field::root(object), Field::root(old));
    let mut errors = Errors::new();
    attachment(&object, &mut errors);
    attachment_update(&object, &old, &mut errors);
    errors
}

/// Checks an update of a VolumeAttachment: its spec is immutable. Follows `ValidateVolumeAttachmentUpdate`.
pub(crate) fn attachment_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let (spec, was) = (object.at("spec"), old.at("spec"));
    if spec.value() != was.value() {
        errors.push(spec.invalid("field is immutable"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::{found_in_change, messages};

    #[test]
    fn a_driver_that_changed_is_shown_without_what_may_change() {
        let node = |id| {
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
                "spec": {"drivers": [{"name": "d", "nodeID": id, "allocatable": {"count": 5}}]}})
        };
        let errors = found_in_change(drivers_of_node_update, &node("b"), &node("a"));
        let shown = r#"{"Name":"d","NodeID":"b","TopologyKeys":null,"Allocatable":null}"#;
        assert_eq!(
            messages(&errors),
            [format!(
                "spec.drivers: Invalid value: {shown}: field is immutable"
            )]
        );
    }
}
