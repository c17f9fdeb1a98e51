//! Facts about volumes, claims and the pods that use them, for which several controllers ask.

use ringwatch_apimachinery::accessor;
use ringwatch_apimachinery::path;
use serde_json::Value;

/// A claim by namespace and name, or a volume by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum VolumeObject {
    Claim(String, String),
    Volume(String),
}

/// Returns true if a pod has a node.
pub(crate) fn has_node(pod: &Value) -> bool {
    !path::text(pod, "spec.nodeName").is_empty()
}

/// Returns the names of the claims that a pod uses, those that are made for its ephemeral volumes among them.
pub(crate) fn claims_of(pod: &Value) -> Vec<String> {
    let pod_name = accessor::text(pod, "name");
    let volumes = path::list(pod, "spec.volumes").iter();
    let claims = volumes.filter_map(|volume| {
        if volume["ephemeral"].is_object() {
            let volume = volume["name"].as_str().unwrap_or_default();
            return Some(format!("{pod_name}-{volume}"));
        }
        let claim = path::text(volume, "persistentVolumeClaim.claimName");
        (!claim.is_empty()).then(|| claim.to_owned())
    });
    claims.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_use_the_claims_that_they_name_and_those_of_ephemeral_volumes() {
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "d", "emptyDir": {}},
            ]},
        });
        assert_eq!(claims_of(&pod), ["c", "p-b"]);
    }
}
