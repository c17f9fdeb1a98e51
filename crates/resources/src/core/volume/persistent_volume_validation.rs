//! Checks of PersistentVolumes.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, remove};
use ringwatch_apimachinery::validation::formats;

use super::claim_validation::{VOLUME_MODES, access_modes};
use super::owner::Owner;
use super::validation::{capacity, source};
use crate::validation::difference::difference;
use crate::validation::field::{Errors, Field};
use crate::validation::internal_form::Shape;
use crate::validation::labels::node_selector;

/// The members of a volume's spec that do not say where it comes from.
const BESIDE_THE_SOURCE: &[&str] = &[
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Checks a PersistentVolume. Follows `ValidatePersistentVolume`.
pub(crate) fn volume(volume: &Field<'_, '_>, errors: &mut Errors) {
    let spec = volume.at("spec");
    let name = volume.at("metadata.name").text();
    access_modes_of(&spec, errors);
    capacity(&spec.at("capacity"), errors);
    let policy = spec.at("persistentVolumeReclaimPolicy");
    policy.may_be_one_of(&["Delete", "Recycle", "Retain"], errors);
    let affinity = spec.at("nodeAffinity");
    if affinity.is_set() {
        if affinity.at("required").is_set() {
            node_selector(&affinity.at("required"), errors);
        } else {
            let why = "must specify required node constraints";
            errors.push(affinity.at("required").required(why));
        }
    }
    source(&spec, Owner::PersistentVolume { name }, errors);
    if spec.at("local").is_set() && !affinity.is_set() {
        errors.push(affinity.required("Local volume requires node affinity"));
    }
    root_is_not_recycled(&spec, errors);
    spec.at("storageClassName")
        .may_conform(formats::dns_subdomain, errors);
    spec.at("volumeMode").may_be_one_of(VOLUME_MODES, errors);
    attributes_class(&spec, errors);
}

/// Checks the spec of a volume that is written into a VolumeAttachment: a CSI volume that nothing claims. Follows
/// `ValidatePersistentVolumeSpec`.
pub(crate) fn inline_spec(spec: &Field<'_, '_>, errors: &mut Errors) {
    const WHY: &str = "may not be specified in the context of inline volumes";
    spec.at("claimRef").must_be_unset(WHY, errors);
    if !spec.at("capacity").is_empty() {
        errors.push(spec.at("capacity").forbidden(WHY));
    }
    let driver = spec.at("csi");
    if !driver.is_set() {
        let why = "has to be specified in the context of inline volumes";
        errors.push(driver.required(why));
    }
    access_modes_of(spec, errors);
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if !matches!(policy.text(), "" | "Retain") {
        let why = "may only be Retain in the context of inline volumes";
        errors.push(policy.forbidden(why));
    }
    spec.at("nodeAffinity").must_be_unset(WHY, errors);
    source(spec, Owner::PersistentVolume { name: "" }, errors);
    if spec.at("local").is_set() {
        let why = "Local volume requires node affinity";
        errors.push(spec.at("nodeAffinity").required(why));
    }
    root_is_not_recycled(spec, errors);
    if !spec.at("storageClassName").is_empty() {
        errors.push(spec.at("storageClassName").forbidden(WHY));
    }
    let mode = spec.at("volumeMode");
    if mode.is_set() && mode.text() != "Filesystem" {
        let why =
            "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.push(mode.forbidden(why));
    }
}

fn access_modes_of(spec: &Field<'_, '_>, errors: &mut Errors) {
    let modes = spec.at("accessModes");
    modes.must_be_set(errors);
    access_modes(&modes, errors);
}

fn root_is_not_recycled(spec: &Field<'_, '_>, errors: &mut Errors) {
    let policy = spec.at("persistentVolumeReclaimPolicy");
    let root = spec.at("hostPath.path").text();
    if !root.is_empty() && root.trim_matches('/').is_empty() && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
}

fn attributes_class(spec: &Field<'_, '_>, errors: &mut Errors) {
    let class = spec.at("volumeAttributesClassName");
    if !class.is_set() {
        return;
    }
    if class.is_empty() {
        errors.push(class.required("an empty string is disallowed"));
    } else {
        class.must_conform(formats::dns_subdomain, errors);
    }
    if !spec.at("csi").is_set() {
        let why = "has to be specified when using volumeAttributesClassName";
        errors.push(spec.at("csi").required(why));
    }
}

/// Checks an update of a PersistentVolume: its source is immutable. Follows `ValidatePersistentVolumeUpdate`.
pub(crate) fn volume_update(volume: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let source = |at: &Field<'_, '_>| {
        let mut spec = at.at("spec").value().clone();
        for member in BESIDE_THE_SOURCE {
            drop(remove(&mut spec, member));
        }
        spec
    };
    let (mut now, before) = (source(volume), source(old));
    let secret = "csi.controllerExpandSecretRef";
    if get(&before, secret).is_none() {
        drop(remove(&mut now, secret));
    }
    if now != before {
        let source = volume.at("spec.persistentvolumesource");
        let difference = Shape::named("core.PersistentVolumeSource")
            .map(|shape| difference(shape, &before, &now))
            .unwrap_or_default();
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(source.forbidden(why));
    }
    let mode = volume.at("spec.volumeMode");
    if mode.value() != old.at("spec.volumeMode").value() {
        let mut error = mode.invalid("field is immutable");
        error.field = "volumeMode".to_owned();
        errors.push(error);
    }
    let affinity = volume.at("spec.nodeAffinity");
    let was = old.at("spec.nodeAffinity");
    if was.is_set() && was.value() != affinity.value() {
        let mut error = affinity.invalid("field is immutable");
        error.field = "nodeAffinity".to_owned();
        errors.push(error);
    }
    let class = volume.at("spec.volumeAttributesClassName");
    if old.at("spec.volumeAttributesClassName").is_set() && !class.is_set() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}
