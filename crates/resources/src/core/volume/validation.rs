//! The volumes of pods, and the sources that they have in common with PersistentVolumes.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::validation::formats;

use super::owner::Owner;
use super::{claim_metadata, claim_validation, drivers, files};
use crate::validation::field::{Errors, Field};
use crate::validation::quantities;
use crate::validation::values::{below, no_backsteps};

/// The sources of volumes of pods, in the order in which Kubernetes looks, and what each has to say.
const SOURCES: &[(&str, &[&str])] = &[
    ("emptyDir", &[]),
    ("hostPath", &["path"]),
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("nfs", &["server", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flocker", &[]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("quobyte", &[]),
    ("downwardAPI", &[]),
    ("fc", &[]),
    ("flexVolume", &["driver"]),
    ("configMap", &["name"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("storageos", &[]),
    ("projected", &[]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("csi", &[]),
    ("ephemeral", &["volumeClaimTemplate"]),
    ("image", &[]),
];
/// The sources of PersistentVolumes, in the order in which Kubernetes looks.
const PERSISTENT_SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
/// The volumes of a pod, by their names.
pub(crate) type Volumes<'v, 'p> = BTreeMap<&'v str, Field<'v, 'p>>;

/// Checks the volumes of a pod with a name, or of the template of one, and returns the valid ones by name. Follows
/// `ValidateVolumes`.
pub(crate) fn volumes<'v, 'p>(
    spec: &'p Field<'v, '_>,
    pod_name: Option<&str>,
    errors: &mut Errors,
) -> Volumes<'v, 'p> {
    let mut right = Volumes::new();
    let pod = pod_name.filter(|name| !name.is_empty());
    let room = Cell::new(ERROR_BYTES_MAX);
    let ephemeral = spec.items("volumes");
    let ephemeral = ephemeral.filter(|it| it.at("ephemeral").is_set());
    let ephemeral: HashSet<&str> = ephemeral.map(|it| it.at("name").text()).collect();
    // The claim of an ephemeral volume has the names of its pod and its own.
    let is_made = |claim: &str| {
        let volume = pod.and_then(|pod| claim.strip_prefix(pod)?.strip_prefix('-'));
        volume.is_some_and(|volume| ephemeral.contains(volume))
    };
    for volume in spec.items("volumes") {
        let mut wrong = Errors::new();
        let name = volume.at("name");
        let owner = Owner::Pod {
            volume: name.text(),
            pod,
            is_template: pod_name.is_none(),
            room: &room,
        };
        source(&volume, owner, &mut wrong);
        name.must_be_set_and_conform(formats::dns_label, &mut wrong);
        if right.contains_key(name.text()) {
            wrong.push(name.duplicate());
        }
        if wrong.is_empty() {
            right.insert(name.text(), volume);
        }
        errors.extend(wrong);
        let claim = volume.at("persistentVolumeClaim.claimName");
        if is_made(claim.text()) {
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(claim.invalid(why));
        }
    }
    right
}

/// Checks that a volume has exactly one source, and that source. Follows `validateVolumeSource`, and
/// `ValidatePersistentVolumeSpec` for PersistentVolumes.
pub(super) fn source(at: &Field<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    let mut count = 0;
    let mut look = |kind: &'static str| {
        let source = at.at(kind);
        if !source.is_set() {
            return;
        }
        count += 1;
        let is_persistent = matches!(owner, Owner::PersistentVolume { .. });
        // Kubernetes does not refuse a second source of this kind.
        if count == 1 || (is_persistent && kind == "flexVolume") {
            let source = at.at_named(kind, path_of(kind));
            let required = SOURCES.iter().find(|(of, _)| *of == kind);
            for member in required.into_iter().flat_map(|(_, members)| *members) {
                source.at(member).must_be_set(errors);
                if *member == "targetPortal" && is_persistent {
                    drivers::iscsi_session(at, owner, errors);
                }
            }
            details(&source, kind, owner, errors);
            beside(at, kind, owner, errors);
        } else {
            // As Kubernetes writes them.
            let blamed = match kind {
                "cephfs" => "cephFS",
                "downwardAPI" => "downwarAPI",
                other => other,
            };
            let why = "may not specify more than 1 volume type";
            errors.push(at.at(blamed).forbidden(why));
        }
        if kind == "iscsi" && !is_persistent {
            drivers::iscsi_session(at, owner, errors);
        }
    };
    match owner {
        Owner::Pod { .. } => SOURCES.iter().for_each(|(kind, _)| look(kind)),
        Owner::PersistentVolume { .. } => PERSISTENT_SOURCES.iter().for_each(|kind| look(kind)),
    }
    if count == 0 {
        errors.push(at.required("must specify a volume type"));
    }
}

/// Checks what there has to be beside a source: nodes for a local one, and a good name for a claim that is made.
fn beside(at: &Field<'_, '_>, kind: &str, owner: Owner<'_>, errors: &mut Errors) {
    match (kind, owner) {
        (
            "local",
            Owner::PersistentVolume {
                has_affinity: false,
                ..
            },
        ) => {
            let why = "Local volume requires node affinity";
            errors.push(at.at("nodeAffinity").required(why));
        }
        (
            "ephemeral",
            Owner::Pod {
                volume,
                pod: Some(pod),
                room,
                ..
            },
        ) if !volume.is_empty() && room.get() > 0 => {
            let claim = format!("{pod}-{volume}");
            for why in formats::dns_subdomain(&claim) {
                let why = format!("PVC name {claim:?}: {why}");
                room.set(room.get().saturating_sub(why.len()));
                errors.push(at.at("name").invalid_value(volume, why));
            }
        }
        _ => {}
    }
}

/// Returns the name of a source in the paths of its errors.
fn path_of(kind: &str) -> &str {
    if kind == "gcePersistentDisk" {
        "persistentDisk"
    } else {
        kind
    }
}

fn details(source: &Field<'_, '_>, kind: &str, owner: Owner<'_>, errors: &mut Errors) {
    let is_persistent = matches!(owner, Owner::PersistentVolume { .. });
    match kind {
        "emptyDir" => {
            let limit = source.at("sizeLimit");
            if limit.quantity().is_some_and(|it| it.is_negative()) {
                errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
            }
        }
        "hostPath" if !source.at("path").is_empty() => {
            source.at("path").must_conform(no_backsteps, errors);
            source.at("type").may_be_one_of(HOST_PATH_TYPES, errors);
        }
        "gitRepo" => source.at("directory").must_conform(below, errors),
        "local" => {
            source.at("path").must_be_set(errors);
            source.at("path").must_conform(no_backsteps, errors);
        }
        "nfs" if !source.at("path").text().starts_with('/') => {
            errors.push(source.at("path").invalid("must be an absolute path"));
        }
        "gcePersistentDisk" | "awsElasticBlockStore" => drivers::partition(source, errors),
        "secret" | "configMap" => files::keys(source, errors),
        "downwardAPI" => files::downward_api(source, errors),
        "projected" => files::projected(source, errors),
        "iscsi" => drivers::iscsi(source, owner, errors),
        "glusterfs" if is_persistent => drivers::glusterfs(source, errors),
        "flocker" => drivers::flocker(source, errors),
        "quobyte" => drivers::quobyte(source, errors),
        "cinder" => drivers::secret(&source.at("secretRef"), owner, errors),
        "fc" => drivers::fibre_channel(source, errors),
        "flexVolume" => drivers::flex_options(source, errors),
        "azureFile" if is_persistent => {
            let namespace = source.at("secretNamespace");
            if namespace.is_set() {
                namespace.must_be_set(errors);
            }
        }
        "azureDisk" => drivers::azure_disk(source, errors),
        "storageos" => drivers::storage_os(source, owner, errors),
        "csi" => drivers::csi(source, owner, errors),
        "ephemeral" if source.at("volumeClaimTemplate").is_set() => {
            claim_template(&source.at("volumeClaimTemplate"), errors);
        }
        "image" => {
            if !matches!(
                owner,
                Owner::Pod {
                    is_template: true,
                    ..
                }
            ) {
                source.at("reference").must_be_set(errors);
            }
            let policies = ["Always", "IfNotPresent", "Never"];
            source.at("pullPolicy").may_be_one_of(&policies, errors);
        }
        _ => {}
    }
}

/// Checks the template of a claim: of its metadata, labels and annotations alone may be set. Follows
/// `ValidatePersistentVolumeClaimTemplate`.
fn claim_template(template: &Field<'_, '_>, errors: &mut Errors) {
    claim_metadata::template_metadata(&template.at("metadata"), errors);
    let mut wrong = Errors::new();
    claim_validation::claim_spec(&template.at("spec"), &mut wrong);
    // No pod was stored before the rules of its templates.
    errors.extend(wrong.into_iter().map(|mut error| {
        error.later_rule = None;
        error
    }));
}

/// Checks the capacity of a PersistentVolume: storage, and nothing else. Follows `ValidatePersistentVolumeSpec`.
pub(super) fn capacity(at: &Field<'_, '_>, errors: &mut Errors) {
    at.must_be_set(errors);
    let members = at.value().as_object();
    let storage_alone = members.is_some_and(|it| it.len() == 1 && it.contains_key("storage"));
    if !storage_alone {
        errors.push(at.unsupported_value(at.value().clone(), &["storage"]));
    }
    for quantity in members.into_iter().flat_map(serde_json::Map::keys) {
        let mut found = Errors::new();
        quantities::basic(&at.at(quantity), &mut found);
        quantities::positive(&at.at(quantity), &mut found);
        errors.extend(found.into_iter().map(|mut error| {
            error.field = format!("{}[{quantity}]", at.field());
            error
        }));
    }
}
