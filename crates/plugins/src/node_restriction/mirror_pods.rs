//! Checks mirror pods, which kubelets create to represent their static pods: one belongs to its node and refers to no
//! other object.

use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_authorization::{MIRROR, referred_resources};
use serde_json::Value;

/// Volumes that need no other object of the API.
const PLAIN_VOLUMES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Volumes that refer to another object, with the kind of object.
const REFERRING_VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    (
        "ephemeral",
        "persistentvolumeclaims (via ephemeral volumes)",
    ),
    ("azureFile", "secrets (via azureFile volumes)"),
];

/// Sources of projected volumes that refer to another object, with the kind of object.
const REFERRING_SOURCES: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    (
        "serviceAccountToken",
        "serviceaccounts (via projected volumes)",
    ),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// Returns why a kubelet may not create a pod: it is no mirror pod, or not owned by the kubelet's node alone.
pub(super) fn refuse(node: &str, pod: &Value) -> Option<String> {
    if pod["metadata"]["annotations"].get(MIRROR).is_none() {
        return Some(format!(
            "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
        ));
    }
    if text(pod, "spec.nodeName") != node {
        return Some(format!(
            "node {node:?} can only create pods with spec.nodeName set to itself"
        ));
    }
    let why = match list(pod, "metadata.ownerReferences") {
        [owner] => {
            let is_node = text(owner, "apiVersion") == "v1" && text(owner, "kind") == "Node";
            if !is_node || text(owner, "name") != node {
                "can only create pods with an owner reference set to itself"
            } else if owner["controller"] != true {
                "can only create pods with a controller owner reference set to itself"
            } else if owner["blockOwnerDeletion"] == true {
                "must not set blockOwnerDeletion on an owner reference"
            } else {
                return None;
            }
        }
        [] => "can only create pods with an owner reference set to itself",
        _ => "can only create pods with a single owner reference set to itself",
    };
    Some(format!("node {node:?} {why}"))
}

/// Returns why a kubelet may not create a pod: it refers to another object, which the node could read then.
pub(super) fn refuse_references(node: &str, pod: &Value) -> Option<String> {
    match reference(pod) {
        Ok(None) => None,
        Ok(Some(what)) => Some(format!(
            "node {node:?} can not create pods that reference {what}"
        )),
        Err(why) => Some(format!(
            "error checking mirror pod for API references: {why}"
        )),
    }
}

/// Returns the first thing that a pod refers to.
///
/// # Errors
/// A message about a volume of an unknown kind.
fn reference(pod: &Value) -> Result<Option<&'static str>, String> {
    let referred = referred_resources(pod);
    for known in ["serviceaccounts", "secrets", "configmaps"] {
        if referred.contains(&known) {
            return Ok(Some(known));
        }
    }
    if !list(pod, "spec.resourceClaims").is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in list(pod, "spec.volumes") {
        if PLAIN_VOLUMES.iter().any(|kind| has(volume, kind)) {
            continue;
        }
        let referring = REFERRING_VOLUMES.iter().find(|(kind, _)| has(volume, kind));
        if let Some((_, what)) = referring {
            return Ok(Some(*what));
        }
        let name = text(volume, "name");
        if !has(volume, "projected") {
            return Err(format!("unknown volume type for volume  {name:?}"));
        }
        for source in list(volume, "projected.sources") {
            let referring = REFERRING_SOURCES.iter().find(|(kind, _)| has(source, kind));
            if let Some((_, what)) = referring {
                return Ok(Some(*what));
            }
            if !has(source, "downwardAPI") {
                return Err(format!("unknown source for projected volume {name:?}"));
            }
        }
    }
    Ok(None)
}

fn has(object: &Value, member: &str) -> bool {
    get(object, member).is_some_and(|it| !it.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mirror_pods_refer_to_nothing() {
        let volume = |kind: &str, of: Value| json!({"volumes": [{"name": "v", kind: of}]});
        let projected = |kind: &str| volume("projected", json!({"sources": [{kind: {}}]}));
        for (spec, what) in [
            (json!({"serviceAccountName": "x"}), "serviceaccounts"),
            (json!({"imagePullSecrets": [{"name": "x"}]}), "secrets"),
            (
                json!({"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}]}),
                "resourceclaims",
            ),
            (
                volume("csi", json!({"driver": "d"})),
                "csidrivers (via CSI volumes)",
            ),
            (
                volume("glusterfs", json!({"endpoints": "e"})),
                "endpoints (via glusterFS volumes)",
            ),
            (
                volume("ephemeral", json!({})),
                "persistentvolumeclaims (via ephemeral volumes)",
            ),
            (
                projected("serviceAccountToken"),
                "serviceaccounts (via projected volumes)",
            ),
            (projected("clusterTrustBundle"), "clustertrustbundles"),
            (projected("podCertificate"), "podcertificates"),
        ] {
            let pod = json!({"spec": spec});
            assert_eq!(reference(&pod), Ok(Some(what)), "{pod}");
        }
        for spec in [
            json!({}),
            volume("hostPath", json!({"path": "/"})),
            volume("emptyDir", json!({})),
            projected("downwardAPI"),
        ] {
            assert_eq!(reference(&json!({"spec": spec})), Ok(None));
        }
        let unknown = json!({"spec": volume("other", json!({}))});
        assert_eq!(
            refuse_references("a", &unknown).as_deref(),
            Some(
                "error checking mirror pod for API references: unknown volume type for volume  \"v\""
            )
        );
    }
}
