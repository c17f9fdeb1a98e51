//! What the pods of each node need.
//!
//! A node may read what its pods refer to. Pods are filed once they have a node, and what they need does not
//! change from then on, so most changes of pods cost a look-up.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use crate::registry::resources::path::{get, list, text};

/// What an object is: its resource, namespace and name.
type Name = (&'static str, String, String);

/// What the pods of each node need.
#[derive(Debug, Default)]
pub struct NodeGraph(RwLock<Graph>);

#[derive(Debug, Default)]
struct Graph {
    pods: HashMap<(String, String), Pod>,
    /// How many pods of a node need something.
    needs: HashMap<String, HashMap<Name, u32>>,
    /// The namespace and name of the claim that a volume is bound to.
    claims: HashMap<String, (String, String)>,
    /// The node of an attachment of a volume.
    attachments: HashMap<String, String>,
}

/// A pod that has a node.
#[derive(Debug)]
struct Pod {
    uid: String,
    node: String,
    needs: Vec<Name>,
}

impl NodeGraph {
    /// Takes what another one knows for what it knew, at once: whoever asks meanwhile is answered by one of both.
    pub fn replace(&self, by: Self) {
        let graph = by.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = graph;
    }

    /// Whether a pod of this uid is known already.
    #[must_use]
    pub fn knows_pod(&self, namespace: &str, name: &str, uid: &str) -> bool {
        let graph = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let pod = graph.pods.get(&(namespace.to_owned(), name.to_owned()));
        pod.is_some_and(|pod| pod.uid == uid)
    }

    /// Takes a pod as it is now.
    pub fn add_pod(&self, pod: &Value) {
        let (namespace, name) = (text(pod, "metadata.namespace"), text(pod, "metadata.name"));
        self.remove_pod(namespace, name);
        let node = text(pod, "spec.nodeName");
        if node.is_empty() {
            return;
        }
        let needs = if is_mirror(pod) {
            // Its kubelet has made it up, and could name anything.
            Vec::new()
        } else {
            needs(pod, namespace)
        };
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let of_node = graph.needs.entry(node.to_owned()).or_default();
        for need in &needs {
            *of_node.entry(need.clone()).or_default() += 1;
        }
        let key = (namespace.to_owned(), name.to_owned());
        graph.pods.insert(
            key,
            Pod {
                uid: text(pod, "metadata.uid").to_owned(),
                node: node.to_owned(),
                needs,
            },
        );
    }

    /// A pod is gone.
    pub fn remove_pod(&self, namespace: &str, name: &str) {
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(pod) = graph.pods.remove(&(namespace.to_owned(), name.to_owned())) else {
            return;
        };
        let Some(of_node) = graph.needs.get_mut(&pod.node) else {
            return;
        };
        for need in &pod.needs {
            match of_node.get_mut(need) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(of_node.remove(need)),
            }
        }
        if of_node.is_empty() {
            graph.needs.remove(&pod.node);
        }
    }

    /// Takes a volume as it is now; null if it is gone.
    pub fn set_volume(&self, name: &str, volume: &Value) {
        let claim = (
            text(volume, "spec.claimRef.namespace"),
            text(volume, "spec.claimRef.name"),
        );
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if claim.1.is_empty() {
            graph.claims.remove(name);
        } else {
            let claim = (claim.0.to_owned(), claim.1.to_owned());
            graph.claims.insert(name.to_owned(), claim);
        }
    }

    /// Takes an attachment as it is now; null if it is gone.
    pub fn set_attachment(&self, name: &str, attachment: &Value) {
        let node = text(attachment, "spec.nodeName");
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if node.is_empty() {
            graph.attachments.remove(name);
        } else {
            graph.attachments.insert(name.to_owned(), node.to_owned());
        }
    }

    /// Whether a node has to do with an object.
    pub(super) fn relates(&self, node: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let graph = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let needs = |resource: &str, namespace: &str, name: &str| {
            let known = KINDS.iter().find(|known| **known == resource);
            known.is_some_and(|known| {
                let needs = graph.needs.get(node);
                let need = (*known, namespace.to_owned(), name.to_owned());
                needs.is_some_and(|needs| needs.contains_key(&need))
            })
        };
        match resource {
            "persistentvolumes" => {
                let claim = graph.claims.get(name);
                claim.is_some_and(|(namespace, claim)| needs(CLAIMS, namespace, claim))
            }
            "volumeattachments" => graph.attachments.get(name).is_some_and(|it| it == node),
            "pods" => {
                let pod = graph.pods.get(&(namespace.to_owned(), name.to_owned()));
                pod.is_some_and(|pod| pod.node == node)
            }
            resource => needs(resource, namespace, name),
        }
    }
}

const SECRETS: &str = "secrets";
const CONFIG_MAPS: &str = "configmaps";
const CLAIMS: &str = "persistentvolumeclaims";
const ACCOUNTS: &str = "serviceaccounts";
const DEVICE_CLAIMS: &str = "resourceclaims";

/// What pods refer to.
const KINDS: [&str; 5] = [SECRETS, CONFIG_MAPS, CLAIMS, ACCOUNTS, DEVICE_CLAIMS];

/// The annotation of pods that kubelets create to show what they run by themselves.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

fn is_mirror(pod: &Value) -> bool {
    !pod["metadata"]["annotations"][MIRROR].is_null()
}

/// The resources of what a pod refers to, such as `secrets`.
pub fn referred_resources(pod: &Value) -> Vec<&'static str> {
    let needs = needs(pod, "").into_iter();
    needs.map(|(resource, ..)| resource).collect()
}

/// What a pod refers to, each once.
fn needs(pod: &Value, namespace: &str) -> Vec<Name> {
    let mut found = Vec::new();
    let mut need = |kind: &'static str, name: &str| {
        let need = (kind, namespace.to_owned(), name.to_owned());
        if !name.is_empty() && !found.contains(&need) {
            found.push(need);
        }
    };
    need(ACCOUNTS, text(pod, "spec.serviceAccountName"));
    for secret in list(pod, "spec.imagePullSecrets") {
        need(SECRETS, text(secret, "name"));
    }
    for kind in ["containers", "initContainers", "ephemeralContainers"] {
        for container in list(pod, &format!("spec.{kind}")) {
            for variable in list(container, "env") {
                need(SECRETS, text(variable, "valueFrom.secretKeyRef.name"));
                need(
                    CONFIG_MAPS,
                    text(variable, "valueFrom.configMapKeyRef.name"),
                );
            }
            for source in list(container, "envFrom") {
                need(SECRETS, text(source, "secretRef.name"));
                need(CONFIG_MAPS, text(source, "configMapRef.name"));
            }
        }
    }
    for volume in list(pod, "spec.volumes") {
        need(SECRETS, text(volume, "secret.secretName"));
        need(CONFIG_MAPS, text(volume, "configMap.name"));
        need(CLAIMS, text(volume, "persistentVolumeClaim.claimName"));
        if get(volume, "ephemeral").is_some() {
            let claim = format!("{}-{}", text(pod, "metadata.name"), text(volume, "name"));
            need(CLAIMS, &claim);
        }
        need(SECRETS, text(volume, "csi.nodePublishSecretRef.name"));
        for kind in [
            "cephfs",
            "flexVolume",
            "iscsi",
            "rbd",
            "scaleIO",
            "storageos",
        ] {
            need(SECRETS, text(volume, &format!("{kind}.secretRef.name")));
        }
        need(SECRETS, text(volume, "azureFile.secretName"));
        for source in list(volume, "projected.sources") {
            need(SECRETS, text(source, "secret.name"));
            need(CONFIG_MAPS, text(source, "configMap.name"));
        }
    }
    for claim in list(pod, "spec.resourceClaims") {
        need(DEVICE_CLAIMS, text(claim, "resourceClaimName"));
    }
    for claim in list(pod, "status.resourceClaimStatuses") {
        need(DEVICE_CLAIMS, text(claim, "resourceClaimName"));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {"nodeName": node,
            "serviceAccountName": "robot", "imagePullSecrets": [{"name": "pull"}],
            "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "env"}}}],
                "envFrom": [{"configMapRef": {"name": "from"}}]}],
            "volumes": [{"secret": {"secretName": "vol"}}, {"persistentVolumeClaim": {"claimName": "claim"}},
                {"projected": {"sources": [{"configMap": {"name": "projected"}}]}},
                {"name": "scratch", "ephemeral": {}}]}})
    }

    #[test]
    fn nodes_have_to_do_with_what_their_pods_refer_to() {
        let graph = NodeGraph::default();
        graph.add_pod(&pod("p", "a"));
        graph.set_volume(
            "pv",
            &json!({"spec": {"claimRef": {"namespace": "ns", "name": "claim"}}}),
        );
        graph.set_attachment("va", &json!({"spec": {"nodeName": "a"}}));
        for (resource, name) in [
            ("secrets", "pull"),
            ("secrets", "env"),
            ("secrets", "vol"),
            ("configmaps", "from"),
            ("configmaps", "projected"),
            ("persistentvolumeclaims", "claim"),
            ("persistentvolumeclaims", "p-scratch"),
            ("persistentvolumes", "pv"),
            ("serviceaccounts", "robot"),
            ("volumeattachments", "va"),
            ("pods", "p"),
        ] {
            assert!(
                graph.relates("a", resource, "ns", name),
                "{resource} {name}"
            );
            assert!(
                !graph.relates("b", resource, "ns", name),
                "{resource} {name}"
            );
        }
        assert!(!graph.relates("a", "secrets", "other", "pull"));
        assert!(!graph.relates("a", "configmaps", "ns", "pull"));
    }

    #[test]
    fn what_the_last_pod_needed_is_forgotten_with_it() {
        let graph = NodeGraph::default();
        graph.add_pod(&pod("p", ""));
        assert!(!graph.knows_pod("ns", "p", "p"));
        graph.add_pod(&pod("p", "a"));
        graph.add_pod(&pod("p", "a"));
        graph.add_pod(&pod("q", "a"));
        assert!(graph.knows_pod("ns", "q", "q") && !graph.knows_pod("ns", "q", "r"));
        graph.remove_pod("ns", "p");
        assert!(graph.relates("a", "secrets", "ns", "pull"));
        graph.remove_pod("ns", "q");
        assert!(!graph.relates("a", "secrets", "ns", "pull"));
        assert!(graph.0.read().expect("sound").needs.is_empty());
    }

    #[test]
    fn nothing_stays_of_what_is_replaced() {
        let (graph, fresh) = (NodeGraph::default(), NodeGraph::default());
        graph.add_pod(&pod("p", "a"));
        fresh.add_pod(&pod("q", "b"));
        graph.replace(fresh);
        assert!(!graph.relates("a", "pods", "ns", "p"));
        assert!(graph.relates("b", "pods", "ns", "q"));
    }
}
