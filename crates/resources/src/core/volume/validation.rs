//! The sources of volumes, of pods and of PersistentVolumes.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::validation::formats;

use super::claim_validation;
use crate::core::field_reference::{POD_FIELDS_OF_FILES, pod_field, resource_field};
use crate::validation::field::{Errors, Field};
use crate::validation::quantities;
use crate::validation::values::{below, no_backsteps};

/// The sources of volumes, in the order in which Kubernetes looks, and what each has to say.
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
    ("quobyte", &["registry", "volume"]),
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
    ("local", &["path"]),
    ("csi", &["driver"]),
    ("ephemeral", &["volumeClaimTemplate"]),
    ("image", &[]),
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
/// The permissions that a file may have: 0777.
const MODE_MAX: i64 = 0o777;

/// The volumes of a pod, by their names.
pub(crate) type Volumes<'v, 'p> = std::collections::BTreeMap<&'v str, Field<'v, 'p>>;

/// Checks the volumes of a pod, and returns the valid ones by name. Follows `ValidateVolumes`.
pub(crate) fn volumes<'v, 'p>(
    spec: &'p Field<'v, '_>,
    of_pod: bool,
    errors: &mut Errors,
) -> Volumes<'v, 'p> {
    let mut right = Volumes::new();
    for volume in spec.items("volumes") {
        let mut wrong = Errors::new();
        source(&volume, &mut wrong);
        let image = volume.at("image");
        if of_pod && image.is_set() {
            image.at("reference").must_be_set(&mut wrong);
        }
        let name = volume.at("name");
        name.must_be_set_and_conform(formats::dns_label, &mut wrong);
        if right.contains_key(name.text()) {
            wrong.push(name.duplicate());
        }
        if wrong.is_empty() {
            right.insert(name.text(), volume);
        }
        errors.extend(wrong);
    }
    right
}

/// Checks that a volume has exactly one source, and that source. Follows `validateVolumeSource`.
pub(super) fn source(at: &Field<'_, '_>, errors: &mut Errors) {
    let mut found = SOURCES.iter().filter(|(kind, _)| at.at(kind).is_set());
    match found.next() {
        None => errors.push(at.required("must specify a volume type")),
        Some((kind, required)) => {
            let source = at.at(kind);
            for member in *required {
                source.at(member).must_be_set(errors);
            }
            details(&source, kind, errors);
        }
    }
    let why = "may not specify more than 1 volume type";
    // As Kubernetes writes them.
    let name = |kind: &'static str| match kind {
        "cephfs" => "cephFS",
        "downwardAPI" => "downwarAPI",
        other => other,
    };
    errors.extend(found.map(|(kind, _)| at.at(name(kind)).forbidden(why)));
}

fn details(source: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
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
        "local" => source.at("path").must_conform(no_backsteps, errors),
        "nfs" if !source.at("path").is_empty() && !source.at("path").text().starts_with('/') => {
            errors.push(source.at("path").invalid("must be an absolute path"));
        }
        "secret" | "configMap" => keys(source, errors),
        "downwardAPI" => {
            mode(&source.at("defaultMode"), errors);
            pod_files(source, errors);
        }
        "projected" => projected(source, errors),
        "csi" => source.at("driver").may_conform(csi_driver, errors),
        "ephemeral" if source.at("volumeClaimTemplate").is_set() => {
            claim_validation::claim_spec(&source.at("volumeClaimTemplate.spec"), errors);
        }
        "azureDisk" => azure_disk(source, errors),
        "image" => {
            let policies = ["Always", "IfNotPresent", "Never"];
            source.at("pullPolicy").may_be_one_of(&policies, errors);
        }
        _ => {}
    }
}

/// Checks an Azure disk: its caching mode, and its kind, which decides on the form of its URI.
fn azure_disk(disk: &Field<'_, '_>, errors: &mut Errors) {
    disk.at("cachingMode")
        .may_be_one_of(&["None", "ReadOnly", "ReadWrite"], errors);
    let (kind, address) = (disk.at("kind"), disk.at("diskURI"));
    kind.may_be_one_of(&["Dedicated", "Managed", "Shared"], errors);
    let (begin, form) = match kind.text() {
        "Managed" => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        _ => (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        ),
    };
    if kind.is_set() && !address.text().starts_with(begin) {
        errors.push(address.unsupported(&[form]));
    }
}

/// Returns the errors in the name of a CSI driver, whose case does not matter. Follows `ValidateCSIDriverName`.
pub(crate) fn csi_driver(name: &str) -> Vec<String> {
    if name.len() > 63 {
        return vec!["must be no more than 63 bytes".into()];
    }
    formats::dns_subdomain(&name.to_lowercase())
}

/// Keys of a secret or config map as files.
fn keys(source: &Field<'_, '_>, errors: &mut Errors) {
    mode(&source.at("defaultMode"), errors);
    for item in source.items("items") {
        item.at("key").must_be_set(errors);
        file_path(&item.at("path"), errors);
        mode(&item.at("mode"), errors);
    }
}

/// Checks the files of a downward API. Errors name no file, as in Kubernetes.
fn pod_files(at: &Field<'_, '_>, errors: &mut Errors) {
    let (own, first) = (at.field(), errors.len());
    for file in at.items("items") {
        let name = file.field();
        pod_file(&file, errors);
        for error in &mut errors[first..] {
            if let Some(rest) = error.field.strip_prefix(&name) {
                error.field = format!("{own}{rest}");
            }
        }
    }
}

fn pod_file(file: &Field<'_, '_>, errors: &mut Errors) {
    file_path(&file.at("path"), errors);
    let (field, resource) = (file.at("fieldRef"), file.at("resourceFieldRef"));
    if field.is_set() {
        pod_field(&field, POD_FIELDS_OF_FILES, errors);
        if resource.is_set() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(file.invalid_value("resource", why));
        }
    } else if resource.is_set() {
        resource_field(&resource, true, errors);
    } else {
        errors.push(file.required("one of fieldRef and resourceFieldRef is required"));
    }
    mode(&file.at("mode"), errors);
}

fn file_path(path: &Field<'_, '_>, errors: &mut Errors) {
    path.must_be_set(errors);
    path.must_conform(below, errors);
    let text = path.text();
    if text.starts_with("..") && !text.starts_with("../") && text != ".." {
        errors.push(path.invalid("must not start with '..'"));
    }
}

fn mode(at: &Field<'_, '_>, errors: &mut Errors) {
    if at
        .number()
        .is_some_and(|mode| !(0..=MODE_MAX).contains(&mode))
    {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(at.invalid(why));
    }
}

/// Checks the sources of a projected volume, which may also be empty. Follows `validateProjectionSources`.
fn projected(at: &Field<'_, '_>, errors: &mut Errors) {
    const KINDS: &[&str] = &[
        "secret",
        "configMap",
        "downwardAPI",
        "serviceAccountToken",
        "clusterTrustBundle",
        "podCertificate",
    ];
    mode(&at.at("defaultMode"), errors);
    for source in at.items("sources") {
        let mut found = KINDS.iter().filter(|kind| source.at(kind).is_set());
        if let Some(kind) = found.next() {
            projected_source(at, &source.at(kind), kind, errors);
        }
        for more in found {
            let why = "may not specify more than 1 volume type per source";
            errors.push(source.at(more).forbidden(why));
        }
    }
}

fn projected_source(volume: &Field<'_, '_>, at: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    /// The shortest life of a token, and the longest that can be counted, in seconds.
    const TOKEN_SECONDS: (i64, i64) = (600, 1 << 32);
    match kind {
        "secret" | "configMap" => {
            at.at("name").must_be_set(errors);
            keys(at, errors);
        }
        "downwardAPI" => pod_files(at, errors),
        "serviceAccountToken" => {
            let seconds = at.at("expirationSeconds");
            let number = seconds.number().unwrap_or(0);
            if number < TOKEN_SECONDS.0 {
                errors.push(
                    seconds
                        .invalid_value(number, "may not specify a duration less than 10 minutes"),
                );
            } else if number > TOKEN_SECONDS.1 {
                errors.push(seconds.invalid_value(
                    number,
                    "may not specify a duration larger than 2^32 seconds",
                ));
            }
            let first = errors.len();
            file_path(&at.at("path"), errors);
            // Kubernetes names the path as if it was one of the volume.
            for error in &mut errors[first..] {
                error.field = volume.at("path").field();
            }
        }
        _ => {}
    }
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
        quantities::positive(&at.at(quantity), &mut found);
        errors.extend(found.into_iter().map(|mut error| {
            error.field = format!("{}[{quantity}]", at.field());
            error
        }));
    }
}
