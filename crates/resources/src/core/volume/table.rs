//! Tables of PersistentVolumes, PersistentVolumeClaims, StorageClasses and CSI objects.

use crate::table::{Column, TableConvertor, cells, subject::RowSubject};

const UNSET: &str = "<unset>";

/// Access modes in the order in which a cell lists them, with their short names.
const ACCESS_MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

/// Annotation that named the StorageClass before there was a field, and takes precedence over it.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Annotations that make a StorageClass the default for claims that name none.
const DEFAULT_ANNOTATIONS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// Table of PersistentVolumes, with capacity, phase, claim and classes.
pub(crate) static PERSISTENT_VOLUMES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Capacity", "How large the volume is."),
        Column::text("Access Modes", "In which ways it can be mounted."),
        Column::text("Reclaim Policy", "What becomes of it when its claim goes."),
        Column::text(
            "Status",
            "Whether it is available, bound, released or failed.",
        ),
        Column::text("Claim", "The claim that it is bound to."),
        Column::text("StorageClass", "StorageClass of the pv"),
        Column::text("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
        Column::text("Reason", "Why it is in that state."),
        Column::AGE,
        Column::text(
            "VolumeMode",
            "Whether it is a file system or a block device.",
        )
        .wide(),
    ],
    |volume| {
        let claim = volume.get("spec.claimRef").map(|claim| volume.part(claim));
        let claim = claim.map(|it| format!("{}/{}", it.text("namespace"), it.text("name")));
        cells![
            volume.name(),
            volume.text_or("spec.capacity.storage", "0"),
            access_modes(volume, "spec.accessModes"),
            volume.text("spec.persistentVolumeReclaimPolicy"),
            phase(volume),
            claim.unwrap_or_default(),
            class(volume),
            volume.text_or("spec.volumeAttributesClassName", UNSET),
            volume.text("status.reason"),
            volume.age(),
            volume.text_or("spec.volumeMode", UNSET),
        ]
    },
);

/// Table of PersistentVolumeClaims, with phase, volume and classes; capacity and access modes only once bound.
pub(crate) static CLAIMS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Status", "Whether it is pending, bound or lost."),
        Column::text("Volume", "The volume that it is bound to."),
        Column::text("Capacity", "How large that is."),
        Column::text("Access Modes", "In which ways it can be mounted."),
        Column::text("StorageClass", "StorageClass of the pvc"),
        Column::text("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
        Column::AGE,
        Column::text(
            "VolumeMode",
            "Whether it asks for a file system or a block device.",
        )
        .wide(),
    ],
    |claim| {
        let bound = !claim.text("spec.volumeName").is_empty();
        let capacity = claim.text_or("status.capacity.storage", "0");
        cells![
            claim.name(),
            phase(claim),
            claim.text("spec.volumeName"),
            if bound { capacity } else { "" },
            if bound {
                access_modes(claim, "status.accessModes")
            } else {
                String::new()
            },
            class(claim),
            claim.text_or("spec.volumeAttributesClassName", UNSET),
            claim.age(),
            claim.text_or("spec.volumeMode", UNSET),
        ]
    },
);

/// Table of StorageClasses, with provisioner and policies; ` (default)` follows the name of a default class.
pub(crate) static STORAGE_CLASSES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Provisioner", "Who makes volumes of the class."),
        Column::text(
            "ReclaimPolicy",
            "What becomes of them when their claims go.",
        ),
        Column::text("VolumeBindingMode", "When they are made and bound."),
        Column::text("AllowVolumeExpansion", "Whether they can grow."),
        Column::AGE,
    ],
    |class| {
        let annotation = |name: &&str| class.member("metadata.annotations", name) == Some("true");
        let default = DEFAULT_ANNOTATIONS.iter().any(annotation);
        cells![
            format!(
                "{}{}",
                class.name(),
                if default { " (default)" } else { "" }
            ),
            class.text("provisioner"),
            class.text_or("reclaimPolicy", "Delete"),
            class.text_or("volumeBindingMode", "Immediate"),
            class.boolean("allowVolumeExpansion") == Some(true),
            class.age(),
        ]
    },
);

/// Table of VolumeAttributesClasses, with their driver.
pub(crate) static VOLUME_ATTRIBUTES_CLASSES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("DriverName", "The driver that knows the attributes."),
        Column::AGE,
    ],
    |class| cells![class.name(), class.text("driverName"), class.age()],
);

/// Table of VolumeAttachments, with attacher, volume and node.
pub(crate) static VOLUME_ATTACHMENTS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column {
            format: "name",
            ..Column::text("Attacher", "The driver that attaches the volume.")
        },
        Column::text("PV", "The volume."),
        Column::text("Node", "To which node."),
        Column::boolean("Attached", "Whether it is attached."),
        Column::AGE,
    ],
    |attachment| {
        cells![
            attachment.name(),
            attachment.text("spec.attacher"),
            attachment.text("spec.source.persistentVolumeName"),
            attachment.text("spec.nodeName"),
            attachment.boolean("status.attached") == Some(true),
            attachment.age(),
        ]
    },
);

/// Table of CSINodes, with the number of their drivers.
pub(crate) static CSI_NODES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::number(
            "Drivers",
            "Drivers indicates the number of CSI drivers registered on the node",
        ),
        Column::AGE,
    ],
    |node| cells![node.name(), node.count("spec.drivers"), node.age()],
);

/// Table of CSIDrivers, with their capabilities.
pub(crate) static CSI_DRIVERS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::boolean("AttachRequired", "Whether volumes must be attached."),
        Column::boolean("PodInfoOnMount", "Whether mounts are told of their pods."),
        Column::boolean(
            "StorageCapacity",
            "Whether the driver tells what room it has.",
        ),
        Column::text("TokenRequests", "The audiences of tokens that it asks for."),
        Column::boolean(
            "RequiresRepublish",
            "Whether mounts are made anew from time to time.",
        ),
        Column::text("Modes", "The lifecycles of volumes that it knows."),
        Column::AGE,
    ],
    |driver| {
        let is = |path| driver.boolean(path) == Some(true);
        let audiences = driver
            .list("spec.tokenRequests")
            .map(|it| it.text("audience"));
        let audiences = audiences.collect::<Vec<_>>().join(",");
        let modes = driver.texts("spec.volumeLifecycleModes").join(",");
        cells![
            driver.name(),
            driver.boolean("spec.attachRequired") != Some(false),
            is("spec.podInfoOnMount"),
            is("spec.storageCapacity"),
            if driver.has("spec.tokenRequests") {
                audiences
            } else {
                UNSET.to_owned()
            },
            is("spec.requiresRepublish"),
            if modes.is_empty() {
                "<none>".to_owned()
            } else {
                modes
            },
            driver.age(),
        ]
    },
);

fn access_modes(object: &RowSubject<'_>, path: &str) -> String {
    let modes = object.texts(path);
    let known = ACCESS_MODES.iter().filter(|(mode, _)| modes.contains(mode));
    known.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn phase<'a>(object: &RowSubject<'a>) -> &'a str {
    if object.is_being_deleted() {
        "Terminating"
    } else {
        object.text("status.phase")
    }
}

fn class<'a>(object: &RowSubject<'a>) -> &'a str {
    object
        .member("metadata.annotations", CLASS_ANNOTATION)
        .unwrap_or_else(|| object.text("spec.storageClassName"))
}
