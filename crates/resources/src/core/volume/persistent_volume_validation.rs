//! Checks of PersistentVolumes.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, get_mut, list, remove, set, text};
use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use super::claim_validation::{VOLUME_MODES, access_modes};
use super::owner::Owner;
use super::validation::{capacity, source};
use crate::validation::check_update;
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

/// The annotation with the options with which a volume is mounted, from before there was a field.
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
/// The sources of volumes that are mounted with options.
const TAKE_OPTIONS: &[&str] = &[
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];
/// The old and new names of labels of nodes.
const NEW_NAMES: &[(&str, &str)] = &[
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    (
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
    ),
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
    let has_affinity = affinity.is_set();
    source(
        &spec,
        Owner::PersistentVolume { name, has_affinity },
        errors,
    );
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
    let inline = Owner::PersistentVolume {
        name: "",
        has_affinity: false,
    };
    source(spec, inline, errors);
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
    if is_root(spec.at("hostPath.path").text()) && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
}

/// Returns true if a path leads to the root.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for step in path.split('/') {
        depth = match step {
            "" | "." => depth,
            ".." => depth.saturating_sub(1),
            _ => depth + 1,
        };
    }
    path.starts_with('/') && depth == 0
}

/// Checks that a volume whose source does not take mount options has no annotation with some. Follows
/// `checkMountOption` in pkg/volume/validation.
pub(crate) fn mount_options(volume: &Field<'_, '_>, errors: &mut Errors) {
    let annotations = volume.at("metadata.annotations");
    let spec = volume.at("spec");
    let takes_some = TAKE_OPTIONS.iter().any(|it| spec.at(it).is_set());
    if !takes_some && annotations.value().get(MOUNT_OPTIONS).is_some() {
        let why = "may not specify mount options for this volume type";
        errors.push(annotations.at(MOUNT_OPTIONS).forbidden(why));
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

/// Checks an update of a PersistentVolume: its source is immutable. Follows `ValidatePersistentVolumeUpdate`, which
/// checks the volume itself once more.
pub(crate) fn volume_update(new: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    check_update(volume, new, old, errors);
    changes(new, old, errors);
}

fn changes(volume: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
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
    if was.is_set() && !is_same_affinity(was.value(), affinity.value()) {
        let why = "field is immutable, except for updating from beta label to GA";
        let mut error = if affinity.is_set() {
            affinity.invalid(why)
        } else {
            affinity.invalid_value(Value::Null, why)
        };
        error.field = "nodeAffinity".to_owned();
        errors.push(error);
    }
    let class = volume.at("spec.volumeAttributesClassName");
    if old.at("spec.volumeAttributesClassName").is_set() && !class.is_set() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// Returns true if the affinity to nodes stays, but for labels that have got another name. Follows
/// `validatePvNodeAffinity`.
fn is_same_affinity(old: &Value, new: &Value) -> bool {
    const TERMS: &str = "required.nodeSelectorTerms";
    let mut renamed = old.clone();
    let terms = get_mut(&mut renamed, TERMS).and_then(Value::as_array_mut);
    for (old, new) in terms.into_iter().flatten().zip(list(new, TERMS)) {
        for expressions in ["matchExpressions", "matchFields"] {
            let old = get_mut(old, expressions).and_then(Value::as_array_mut);
            for (old, new) in old.into_iter().flatten().zip(list(new, expressions)) {
                let (was, now) = (text(old, "key"), text(new, "key"));
                if NEW_NAMES.contains(&(was, now)) {
                    set(old, "key", now.into());
                }
            }
        }
    }
    renamed == *new
}
