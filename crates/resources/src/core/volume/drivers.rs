//! The rules of the sources of volumes that name a storage system or driver.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::sync::LazyLock;

use regex::Regex;
use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::validation::formats;

use super::owner::Owner;
use crate::validation::field::{Errors, Field};

/// The names of iSCSI targets and initiators: the beginning of each form, and the whole.
static ISCSI_NAMES: LazyLock<[(&str, Regex); 3]> = LazyLock::new(|| {
    let form = |text| Regex::new(text).expect("an expression");
    [
        (
            "iqn",
            form(r"iqn\.[0-9]{4}-[0-9]{2}\.([a-zA-Z0-9.-]+)(:[^,;*&$|\t\n\f\r ]+)$"),
        ),
        ("eui", form("^eui.[a-zA-Z0-9]{16}$")),
        ("naa", form("^naa.[a-zA-Z0-9]{32}$")),
    ]
});
const DRIVER_NAME_BYTES_MAX: usize = 63;
const QUOBYTE_TENANT_BYTES_MAX: usize = 64;
/// Maximum length of a volume's name and its iSCSI portal with a colon between, if the initiator has a name.
const ISCSI_VOLUME_BYTES_MAX: usize = 64;

/// Checks an Azure disk: its caching mode, and its kind, which decides on the form of its URI. Follows
/// `validateAzureDisk`.
pub(super) fn azure_disk(disk: &Field<'_, '_>, errors: &mut Errors) {
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

/// Checks the partition of a disk. Follows `validateGCEPersistentDiskVolumeSource` and
/// `validateAWSElasticBlockStoreVolumeSource`.
pub(super) fn partition(disk: &Field<'_, '_>, errors: &mut Errors) {
    let partition = disk.at("partition");
    // 0, the whole disk, is allowed as well.
    if partition
        .number()
        .is_some_and(|it| !(0..=255).contains(&it))
    {
        errors.push(partition.invalid("must be between 1 and 255, inclusive"));
    }
}

/// Checks an iSCSI disk. Follows `validateISCSIVolumeSource` and `validateISCSIPersistentVolumeSource`.
pub(super) fn iscsi(disk: &Field<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    let target = disk.at("iqn");
    let is_of_pod = matches!(owner, Owner::Pod { .. });
    if !target.is_empty() {
        iscsi_name(&target, target.text(), is_of_pod, errors);
    }
    disk.at("lun").must_be_between(0, 255, errors);
    let secret = disk.at("secretRef");
    let is_asked_for = ["chapAuthDiscovery", "chapAuthSession"];
    if is_asked_for.iter().any(|it| disk.at(it).is_true()) && !secret.is_set() {
        errors.push(secret.required(""));
    }
    if secret.is_set() && !is_of_pod {
        secret.at("name").must_be_set(errors);
    }
    let initiator = disk.at("initiatorName");
    if initiator.is_set() {
        let blamed = disk.at("initiatorname");
        iscsi_name(&blamed, initiator.text(), is_of_pod, errors);
    }
}

fn iscsi_name(blamed: &Field<'_, '_>, name: &str, is_of_pod: bool, errors: &mut Errors) {
    let form = ISCSI_NAMES
        .iter()
        .find(|(begin, _)| name.starts_with(begin));
    let why = match form {
        Some((_, form)) if form.is_match(name) => return,
        None if is_of_pod => "must be valid format starting with iqn, eui, or naa",
        _ => "must be valid format",
    };
    errors.push(blamed.invalid_value(name, why));
}

/// Checks that the name of a volume and its portal are short enough to name a session by. Follows
/// `validateVolumeSource` and `validateISCSIPersistentVolumeSource`.
pub(super) fn iscsi_session(volume: &Field<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    const WHY: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
    let portal = volume.at("iscsi.targetPortal").text();
    let (Owner::Pod { volume: name, .. } | Owner::PersistentVolume { name, .. }) = owner;
    let is_short = name.len() + 1 + portal.len() <= ISCSI_VOLUME_BYTES_MAX;
    if is_short || !volume.at("iscsi.initiatorName").is_set() {
        return;
    }
    errors.push(match owner {
        Owner::Pod { .. } => volume.at("name").invalid_value(name, WHY),
        Owner::PersistentVolume { .. } => {
            let blamed = volume.at("iscsi.targetportal");
            blamed.invalid_value(portal, WHY)
        }
    });
}

/// Checks a Fibre Channel disk: it is named by the targets or by itself. Follows `validateFCVolumeSource`.
pub(super) fn fibre_channel(disk: &Field<'_, '_>, errors: &mut Errors) {
    let (targets, ids) = (disk.at("targetWWNs"), disk.at("wwids"));
    if targets.is_empty() && ids.is_empty() {
        let why = "must specify either targetWWNs or wwids, but not both";
        errors.push(targets.required(why));
    }
    if targets.is_empty() {
        return;
    }
    if !ids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(targets.invalid(why));
    }
    let unit = disk.at("lun");
    if unit.is_set() {
        unit.must_be_between(0, 255, errors);
    } else {
        errors.push(unit.required("lun is required if targetWWNs is specified"));
    }
}

/// Checks a Quobyte volume: its registry is one of `host:port`, or several with commas between. Follows
/// `validateQuobyteVolumeSource`.
pub(super) fn quobyte(volume: &Field<'_, '_>, errors: &mut Errors) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let (registry, tenant) = (volume.at("registry"), volume.at("tenant"));
    if registry.is_empty() {
        errors.push(registry.required(PAIRS));
    } else if tenant.text().len() > QUOBYTE_TENANT_BYTES_MAX {
        let why = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(tenant.required(why));
    } else {
        let wrong = registry.text().split(',').filter(|it| !has_port(it));
        // Every error shows the whole registry.
        let most = 1 + ERROR_BYTES_MAX / registry.text().len();
        errors.extend(wrong.take(most).map(|_| registry.invalid(PAIRS)));
    }
    volume.at("volume").must_be_set(errors);
}

/// Returns true if a text is `host:port` or `[host]:port`, either of which may be empty. Follows `net.SplitHostPort` of
/// Go.
fn has_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let is_plain = |part: &str| !part.contains(['[', ']']);
    let is_host = match host.strip_prefix('[').map(|it| it.strip_suffix(']')) {
        Some(bracketed) => bracketed.is_some_and(is_plain),
        None => is_plain(host) && !host.contains(':'),
    };
    is_host && is_plain(port)
}

/// Checks in which namespace the endpoints of a PersistentVolume of GlusterFS are. Follows
/// `validateGlusterfsPersistentVolumeSource`.
pub(super) fn glusterfs(volume: &Field<'_, '_>, errors: &mut Errors) {
    let namespace = volume.at("endpointsNamespace");
    if namespace.is_set() && namespace.is_empty() {
        let why = "if the endpointnamespace is set, it must be a valid namespace name";
        errors.push(namespace.invalid(why));
    } else {
        namespace.may_conform(formats::dns_label, errors);
    }
}

/// Checks a Flocker dataset, which is named by one of two members. Follows `validateFlockerVolumeSource`.
pub(super) fn flocker(dataset: &Field<'_, '_>, errors: &mut Errors) {
    let (name, id) = (dataset.at("datasetName"), dataset.at("datasetUUID"));
    if name.is_empty() && id.is_empty() {
        errors.push(dataset.required("one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !id.is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(dataset.invalid_value("resource", why));
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

/// Checks the options of a flex volume: those of Kubernetes' domains are reserved. Follows `validateFlexVolumeSource`.
pub(super) fn flex_options(volume: &Field<'_, '_>, errors: &mut Errors) {
    for (name, option) in volume.members("options") {
        let domain = name.split_once('/').map_or(name, |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if [".kubernetes.io", ".k8s.io"]
            .iter()
            .any(|it| domain.ends_with(it))
        {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(option.invalid_value(name, why));
        }
    }
}

/// Checks a StorageOS volume. Follows `validateStorageOSVolumeSource` and `validateStorageOSPersistentVolumeSource`.
pub(super) fn storage_os(volume: &Field<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    volume
        .at("volumeName")
        .must_be_set_and_conform(formats::dns_label, errors);
    volume
        .at("volumeNamespace")
        .may_conform(formats::dns_label, errors);
    secret(&volume.at("secretRef"), owner, errors);
}

/// Checks the reference to a secret, if there is one: of a PersistentVolume it has a namespace too.
pub(super) fn secret(reference: &Field<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    if !reference.is_set() {
        return;
    }
    reference.at("name").must_be_set(errors);
    if matches!(owner, Owner::PersistentVolume { .. }) {
        reference.at("namespace").must_be_set(errors);
    }
}

/// Checks a CSI volume. Follows `validateCSIVolumeSource` and `validateCSIPersistentVolumeSource`.
pub(super) fn csi(volume: &Field<'_, '_>, owner: Owner<'_>, errors: &mut Errors) {
    driver_name(&volume.at("driver"), errors);
    if matches!(owner, Owner::Pod { .. }) {
        let name = volume.at("nodePublishSecretRef.name");
        if volume.at("nodePublishSecretRef").is_set() && name.is_empty() {
            errors.push(name.required(""));
        }
        // Kubernetes leaves the reference out of the path.
        let wrong = formats::dns_subdomain(name.text()).into_iter();
        let wrong = wrong.filter(|_| !name.is_empty());
        errors.extend(wrong.map(|why| volume.at("name").invalid_value(name.text(), why)));
        return;
    }
    volume.at("volumeHandle").must_be_set(errors);
    for reference in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let reference = volume.at(reference);
        if reference.is_set() {
            reference
                .at("name")
                .must_be_set_and_conform(formats::dns_subdomain, errors);
            reference
                .at("namespace")
                .must_be_set_and_conform(formats::dns_label, errors);
        }
    }
}

/// Checks the name of a CSI driver, which is required. Follows `ValidateCSIDriverName`.
pub(crate) fn driver_name(name: &Field<'_, '_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(name.required(""));
    } else {
        driver_form(name, name.text(), errors);
    }
}

/// Checks the form of the name of a CSI driver, whose case does not matter, and blames a field for it.
pub(crate) fn driver_form(blamed: &Field<'_, '_>, name: &str, errors: &mut Errors) {
    if name.len() > DRIVER_NAME_BYTES_MAX {
        errors.push(blamed.too_long(DRIVER_NAME_BYTES_MAX));
    }
    let wrong = formats::dns_subdomain(&name.to_lowercase()).into_iter();
    errors.extend(wrong.map(|why| blamed.invalid_value(name, why)));
}
