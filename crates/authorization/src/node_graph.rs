//! The graph of the objects that the pods of each node need.
//!
//! A node may read the objects that its pods refer to. Pods are added once they have a node. Their references change
//! little from then on: ephemeral containers are added, and claims for devices are created.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use indexmap::IndexSet;
use ringwatch_apimachinery::path::{get, list, text};
use serde_json::Value;

/// The resource, namespace and name of an object.
type ObjectName = (&'static str, String, String);

/// The objects that the pods of each node need.
#[derive(Debug, Default)]
pub struct NodeGraph(RwLock<Graph>);

#[derive(Debug, Default)]
struct Graph {
    pods: HashMap<(String, String), BoundPod>,
    /// The number of pods of a node that refer to an object, by node and object.
    needs: HashMap<String, HashMap<ObjectName, u32>>,
    /// The volumes that are bound to a claim.
    volumes: HashMap<String, Volume>,
    /// The names of the volumes that are mounted with a secret.
    mounted_with: HashMap<(String, String), HashSet<String>>,
    /// The node of an attachment of a volume.
    attachments: HashMap<String, String>,
    /// The node whose devices are in a slice.
    slices: HashMap<String, String>,
}

/// A pod that has a node.
#[derive(Debug, PartialEq, Eq)]
struct BoundPod {
    uid: String,
    node: String,
    needs: IndexSet<ObjectName>,
}

/// A volume that is bound to a claim.
#[derive(Debug)]
struct Volume {
    /// The namespace and name of the claim.
    claim: (String, String),
    /// The namespaces and names of the secrets with which kubelets mount it.
    secrets: HashSet<(String, String)>,
}

impl NodeGraph {
    /// Replaces the graph atomically: a concurrent request is decided by either the old or the new one.
    pub fn replace(&self, by: Self) {
        let graph = by.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = graph;
    }

    /// Adds a pod, or replaces what is known of it.
    pub fn add_pod(&self, pod: &Value) {
        let (namespace, name) = (text(pod, "metadata.namespace"), text(pod, "metadata.name"));
        let node = text(pod, "spec.nodeName");
        if node.is_empty() {
            return self.remove_pod(namespace, name);
        }
        let pod = BoundPod {
            uid: text(pod, "metadata.uid").to_owned(),
            node: node.to_owned(),
            needs: if is_mirror(pod) {
                // The kubelet has created it, and could name anything.
                IndexSet::new()
            } else {
                needs(pod, namespace)
            },
        };
        let key = (namespace.to_owned(), name.to_owned());
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if graph.pods.get(&key) == Some(&pod) {
            return;
        }
        graph.remove_pod(&key);
        let of_node = graph.needs.entry(node.to_owned()).or_default();
        for need in &pod.needs {
            *of_node.entry(need.clone()).or_default() += 1;
        }
        graph.pods.insert(key, pod);
    }

    /// Removes a pod that is gone.
    pub fn remove_pod(&self, namespace: &str, name: &str) {
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        graph.remove_pod(&(namespace.to_owned(), name.to_owned()));
    }

    /// Updates a volume; null if it is deleted.
    pub fn set_volume(&self, name: &str, volume: &Value) {
        let [namespace, claim] =
            ["namespace", "name"].map(|part| text(volume, &format!("spec.claimRef.{part}")));
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        graph.remove_volume(name);
        if claim.is_empty() {
            return;
        }
        let volume = Volume {
            claim: (namespace.to_owned(), claim.to_owned()),
            secrets: secrets_of_volume(volume, namespace),
        };
        for secret in &volume.secrets {
            let volumes = graph.mounted_with.entry(secret.clone()).or_default();
            volumes.insert(name.to_owned());
        }
        graph.volumes.insert(name.to_owned(), volume);
    }

    /// Updates an attachment; null if it is deleted.
    pub fn set_attachment(&self, name: &str, attachment: &Value) {
        let node = text(attachment, "spec.nodeName");
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if node.is_empty() {
            graph.attachments.remove(name);
        } else {
            graph.attachments.insert(name.to_owned(), node.to_owned());
        }
    }

    /// Updates a ResourceSlice; null if it is deleted.
    pub fn set_slice(&self, name: &str, slice: &Value) {
        let node = text(slice, "spec.nodeName");
        let mut graph = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if node.is_empty() {
            graph.slices.remove(name);
        } else {
            graph.slices.insert(name.to_owned(), node.to_owned());
        }
    }

    /// Returns true if a node is related to an object.
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
        let needs_volume = |name: &str| {
            let claim = graph.volumes.get(name).map(|volume| &volume.claim);
            claim.is_some_and(|(namespace, claim)| needs(CLAIMS, namespace, claim))
        };
        match resource {
            "persistentvolumes" => needs_volume(name),
            SECRETS => {
                let secret = (namespace.to_owned(), name.to_owned());
                let volumes = graph.mounted_with.get(&secret).into_iter().flatten();
                needs(SECRETS, namespace, name) || volumes.into_iter().any(|it| needs_volume(it))
            }
            "resourceslices" => graph.slices.get(name).is_some_and(|it| it == node),
            "volumeattachments" => graph.attachments.get(name).is_some_and(|it| it == node),
            "pods" => {
                let pod = graph.pods.get(&(namespace.to_owned(), name.to_owned()));
                pod.is_some_and(|pod| pod.node == node)
            }
            resource => needs(resource, namespace, name),
        }
    }
}

impl Graph {
    fn remove_volume(&mut self, name: &str) {
        let secrets = self.volumes.remove(name).map(|volume| volume.secrets);
        for secret in secrets.into_iter().flatten() {
            if let Some(volumes) = self.mounted_with.get_mut(&secret) {
                volumes.remove(name);
                if volumes.is_empty() {
                    self.mounted_with.remove(&secret);
                }
            }
        }
    }

    fn remove_pod(&mut self, key: &(String, String)) {
        let Some(pod) = self.pods.remove(key) else {
            return;
        };
        let Some(of_node) = self.needs.get_mut(&pod.node) else {
            return;
        };
        for need in &pod.needs {
            match of_node.get_mut(need) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(of_node.remove(need)),
            }
        }
        if of_node.is_empty() {
            self.needs.remove(&pod.node);
        }
    }
}

const SECRETS: &str = "secrets";
const CONFIG_MAPS: &str = "configmaps";
const CLAIMS: &str = "persistentvolumeclaims";
const ACCOUNTS: &str = "serviceaccounts";
const DEVICE_CLAIMS: &str = "resourceclaims";

/// The resources that pods refer to.
const KINDS: [&str; 5] = [SECRETS, CONFIG_MAPS, CLAIMS, ACCOUNTS, DEVICE_CLAIMS];

/// The annotation of pods that kubelets create to show what they run by themselves.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

fn is_mirror(pod: &Value) -> bool {
    !pod["metadata"]["annotations"][MIRROR].is_null()
}

/// Returns the resources that a pod refers to, such as `secrets`.
pub fn referred_resources(pod: &Value) -> Vec<&'static str> {
    let needs = needs(pod, "").into_iter();
    needs.map(|(resource, ..)| resource).collect()
}

/// Lists the objects to which a pod refers, each once and in order.
fn needs(pod: &Value, namespace: &str) -> IndexSet<ObjectName> {
    let mut found = IndexSet::new();
    let mut need = |kind: &'static str, name: &str| {
        if !name.is_empty() {
            found.insert((kind, namespace.to_owned(), name.to_owned()));
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
        // A claim created from a template is named in the status, by the name that the claim has in the pod.
        if get(claim, "resourceClaimTemplateName").is_some_and(Value::is_string) {
            let made = list(pod, "status.resourceClaimStatuses").iter();
            let mut made = made.filter(|it| text(it, "name") == text(claim, "name"));
            let made = made.next().map(|it| text(it, "resourceClaimName"));
            need(DEVICE_CLAIMS, made.unwrap_or_default());
        }
    }
    need(
        DEVICE_CLAIMS,
        text(pod, "status.extendedResourceClaimStatus.resourceClaimName"),
    );
    found
}

/// Returns the secrets with which kubelets mount a volume that is bound to a claim in a namespace. Other secrets of
/// volumes are for controllers.
fn secrets_of_volume(volume: &Value, claim_namespace: &str) -> HashSet<(String, String)> {
    let or_of_claim = |namespace: &str| {
        let namespace = if namespace.is_empty() {
            claim_namespace
        } else {
            namespace
        };
        namespace.to_owned()
    };
    let references = [
        "cephfs.secretRef",
        "cinder.secretRef",
        "flexVolume.secretRef",
        "iscsi.secretRef",
        "rbd.secretRef",
        "scaleIO.secretRef",
        "storageos.secretRef",
        "csi.nodePublishSecretRef",
        "csi.nodeStageSecretRef",
        "csi.nodeExpandSecretRef",
    ];
    let named = references.iter().map(|reference| {
        let part = |part: &str| text(volume, &format!("spec.{reference}.{part}"));
        (or_of_claim(part("namespace")), part("name").to_owned())
    });
    let azure = ["secretNamespace", "secretName"]
        .map(|part| text(volume, &format!("spec.azureFile.{part}")));
    let azure = (or_of_claim(azure[0]), azure[1].to_owned());
    named
        .chain([azure])
        .filter(|(_, name)| !name.is_empty())
        .collect()
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
    fn nodes_may_read_the_secrets_with_which_they_mount_volumes() {
        let graph = NodeGraph::default();
        graph.add_pod(&pod("p", "a"));
        let volume = |source: Value| {
            let mut spec = source;
            spec["claimRef"] = json!({"namespace": "ns", "name": "claim"});
            json!({"spec": spec})
        };
        let secret = |name: &str| json!({"namespace": "storage", "name": name});
        let reads = |namespace: &str, name: &str| graph.relates("a", "secrets", namespace, name);
        graph.set_volume(
            "csi",
            &volume(json!({"csi": {"nodeStageSecretRef": secret("stage"), "nodePublishSecretRef": secret("publish"),
                "nodeExpandSecretRef": secret("expand"), "controllerPublishSecretRef": secret("controller")}})),
        );
        graph.set_volume(
            "azure",
            &volume(json!({"azureFile": {"secretName": "azure"}})),
        );
        for name in ["stage", "publish", "expand"] {
            assert!(reads("storage", name), "{name}");
            assert!(!graph.relates("b", "secrets", "storage", name), "{name}");
        }
        assert!(reads("ns", "azure"), "the namespace is the claim's");
        assert!(!reads("storage", "controller"));
        graph.set_volume(
            "csi",
            &volume(json!({"csi": {"nodeStageSecretRef": secret("other")}})),
        );
        assert!(reads("storage", "other") && !reads("storage", "stage"));
        graph.set_volume("csi", &Value::Null);
        graph.set_volume("azure", &Value::Null);
        assert!(!reads("storage", "other") && !reads("ns", "azure"));
        assert!(graph.0.read().expect("sound").mounted_with.is_empty());
    }

    #[test]
    fn what_the_last_pod_needed_is_forgotten_with_it() {
        let graph = NodeGraph::default();
        graph.add_pod(&pod("p", ""));
        assert!(!graph.relates("a", "pods", "ns", "p"));
        graph.add_pod(&pod("p", "a"));
        graph.add_pod(&pod("p", "a"));
        graph.add_pod(&pod("q", "a"));
        graph.remove_pod("ns", "p");
        assert!(graph.relates("a", "secrets", "ns", "pull"));
        graph.remove_pod("ns", "q");
        assert!(!graph.relates("a", "secrets", "ns", "pull"));
        assert!(graph.0.read().expect("sound").needs.is_empty());
    }

    #[test]
    fn claims_are_those_that_the_pod_asked_for() {
        let graph = NodeGraph::default();
        let mut pod = json!({"metadata": {"name": "p", "namespace": "ns", "uid": "p"}, "spec": {"nodeName": "a",
            "resourceClaims": [{"name": "own", "resourceClaimName": "mine"},
                {"name": "made", "resourceClaimTemplateName": "t"}]}});
        let relates = |name: &str| graph.relates("a", "resourceclaims", "ns", name);
        graph.add_pod(&pod);
        assert!(relates("mine") && !relates("p-made"));
        pod["status"] = json!({"resourceClaimStatuses": [{"name": "made", "resourceClaimName": "p-made"},
            {"name": "own", "resourceClaimName": "x"}, {"name": "other", "resourceClaimName": "y"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "z"}});
        graph.add_pod(&pod);
        assert!(relates("mine") && relates("p-made") && relates("z"));
        assert!(!relates("x") && !relates("y"));
    }

    #[test]
    fn containers_that_come_later_count() {
        let graph = NodeGraph::default();
        let mut pod = pod("p", "a");
        graph.add_pod(&pod);
        assert!(!graph.relates("a", "secrets", "ns", "late"));
        let secret = json!([{"envFrom": [{"secretRef": {"name": "late"}}]}]);
        pod["spec"]["ephemeralContainers"] = secret;
        graph.add_pod(&pod);
        assert!(graph.relates("a", "secrets", "ns", "late"));
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
