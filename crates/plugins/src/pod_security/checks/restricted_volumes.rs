//! Volumes may only be of types that hold no other system's files: configuration, secrets, scratch space, images, and
//! what claims and CSI drivers provide.

use std::collections::BTreeSet;

use serde_json::Value;

use super::violation::{plural, quoted};
use super::{PodCheck, Revision, Violation, host_path_volumes};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, text};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "restrictedVolumes",
    level: Level::Restricted,
    replaces: Some(host_path_volumes::ID),
    revisions: &[Revision::since(0, check)],
};

const ALLOWED: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The types that are not allowed, in the order in which they are looked for.
const RESTRICTED: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let has = |volume: &Value, kind: &str| !volume[kind].is_null();
    let mut types = BTreeSet::new();
    let mut bad = Vec::new();
    for volume in pod.volumes() {
        if ALLOWED.iter().any(|kind| has(volume, kind)) {
            continue;
        }
        bad.push(text(&volume["name"]));
        let found = RESTRICTED.into_iter().find(|kind| has(volume, kind));
        types.insert(found.unwrap_or("unknown"));
    }
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "restricted volume types",
        format!(
            "{} {} {} {} {}",
            plural(bad.len(), "volume", "volumes"),
            quoted(bad.iter().copied()),
            plural(bad.len(), "uses", "use"),
            plural(
                types.len(),
                "restricted volume type",
                "restricted volume types"
            ),
            quoted(types)
        ),
    ))
}
