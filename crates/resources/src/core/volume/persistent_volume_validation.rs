//! Checks of PersistentVolumes.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, remove};
use ringwatch_apimachinery::validation::formats;

use super::claim_validation::{VOLUME_MODES, access_modes};
use super::validation::{capacity, source};
use crate::validation::field::{Errors, Field};
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
    let modes = spec.at("accessModes");
    modes.must_be_set(errors);
    access_modes(&modes, errors);
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
    source(&spec, errors);
    if spec.at("local").is_set() && !affinity.is_set() {
        errors.push(affinity.required("Local volume requires node affinity"));
    }
    let root = spec.at("hostPath.path").text();
    if !root.is_empty() && root.trim_matches('/').is_empty() && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    spec.at("volumeAttributesClassName")
        .may_conform(formats::dns_subdomain, errors);
    spec.at("storageClassName")
        .may_conform(formats::dns_subdomain, errors);
    spec.at("volumeMode").may_be_one_of(VOLUME_MODES, errors);
    let class = spec.at("volumeAttributesClassName");
    if class.is_set() && !spec.at("csi").is_set() {
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
        let why = "spec.persistentvolumesource is immutable after creation\n";
        errors.push(volume.at("spec.persistentvolumesource").forbidden(why));
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
}
