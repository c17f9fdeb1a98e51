//! Kubernetes' NodeRestriction plugin: kubelets write their own node, what belongs to it, and the status of the pods on
//! it.

mod audiences;
mod mirror_pods;
mod own_node;

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringwatch::storage::Interface;
use ringwatch_admission::Plugin;
use ringwatch_admission::lookup::find_tree;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{get, list, remove, text};
use ringwatch_authorization::node_of;
use ringwatch_registry::{Operation, Request};
use ringwatch_resources::SigningRequest;
use serde_json::Value;

/// The members of a claim that a kubelet writes: they tell how large its volume has become.
const CLAIM_MEMBERS: [&str; 4] = [
    "status.allocatedResourceStatuses",
    "status.allocatedResources",
    "status.capacity",
    "status.conditions",
];

/// The namespace of the leases of nodes.
const LEASES: &str = "kube-node-lease";

/// The signers whose certificates make a kubelet.
const KUBELET_SIGNERS: [&str; 2] = [
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/kube-apiserver-client-kubelet",
];

/// The storages of the objects that a kubelet's requests name.
#[derive(Clone, Debug)]
pub struct NodeStorages {
    /// The storage of Nodes.
    pub nodes: Arc<dyn Interface>,
    /// The storage of Pods.
    pub pods: Arc<dyn Interface>,
    /// The storage of PersistentVolumeClaims.
    pub claims: Arc<dyn Interface>,
    /// The storage of PersistentVolumes.
    pub volumes: Arc<dyn Interface>,
    /// The storage of CSIDrivers.
    pub drivers: Arc<dyn Interface>,
}

/// The plugin, with the storages of the objects that it looks up.
#[derive(Debug)]
pub struct NodeRestriction {
    storages: NodeStorages,
}

impl NodeRestriction {
    /// Creates the plugin, which looks objects up in these storages.
    #[must_use]
    pub fn new(storages: NodeStorages) -> Self {
        Self { storages }
    }

    /// Returns a pod, which has to exist.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Value, Error> {
        let key = format!("/pods/{namespace}/{name}");
        let pod = find_tree(&*self.storages.pods, &key).await?;
        pod.ok_or_else(|| Error::not_found("pod", name))
    }

    /// Returns why a kubelet may not write a pod, or something below one.
    async fn refuse_pod(
        &self,
        node: &str,
        request: &Request<'_>,
        object: &Value,
    ) -> Result<Option<String>, Error> {
        let elsewhere = |pod: &Value| text(pod, "spec.nodeName") != node;
        Ok(match (request.subresource(), request.operation) {
            ("", Operation::Create) => self.refuse_mirror(node, object).await?,
            ("", Operation::Delete) => request.old.filter(|old| elsewhere(old)).map(|_| {
                format!("node {node:?} can only delete pods with spec.nodeName set to itself")
            }),
            ("status", Operation::Update) => {
                request.old.and_then(|old| refuse_status(node, old, object))
            }
            ("eviction", Operation::Create) => {
                let pod = self.pod(request.namespace, request.name).await?;
                elsewhere(&pod).then(|| {
                    format!("node {node} can only evict pods with spec.nodeName set to itself")
                })
            }
            ("", operation) => Some(format!(
                "unexpected operation {:?}, node {node:?} can only create and delete mirror pods",
                operation.name()
            )),
            ("status" | "eviction", operation) => {
                Some(format!("unexpected operation {:?}", operation.name()))
            }
            (other, _) => Some(format!(
                "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
            )),
        })
    }

    /// Returns why a kubelet may not create a pod.
    async fn refuse_mirror(&self, node: &str, pod: &Value) -> Result<Option<String>, Error> {
        if let Some(why) = mirror_pods::refuse(node, pod) {
            return Ok(Some(why));
        }
        let stored = find_tree(&*self.storages.nodes, &format!("/minions/{node}")).await?;
        let stored = stored.ok_or_else(|| Error::not_found("node", node))?;
        let uid = text(&stored, "metadata.uid");
        let claimed = list(pod, "metadata.ownerReferences").first();
        let claimed = claimed.map_or("", |owner| text(owner, "uid"));
        if uid != claimed {
            let why = format!("node {node} UID mismatch: expected {claimed} got {uid}");
            return Ok(Some(why));
        }
        Ok(mirror_pods::refuse_references(node, pod))
    }

    /// Returns why a kubelet may not have a token: it is for another's pods, or for an audience that its pod does not
    /// ask for.
    async fn refuse_token(
        &self,
        node: &str,
        request: &Request<'_>,
        object: &Value,
    ) -> Result<Option<String>, Error> {
        let bound = get(object, "spec.boundObjectRef").unwrap_or(&Value::Null);
        let is_pod = text(bound, "kind") == "Pod" && text(bound, "apiVersion") == "v1";
        if !is_pod || text(bound, "name").is_empty() {
            return Ok(Some("node requested token not bound to a pod".to_owned()));
        }
        let uid = text(bound, "uid");
        if uid.is_empty() {
            let why = "node requested token with a pod binding without a uid";
            return Ok(Some(why.to_owned()));
        }
        let pod = self.pod(request.namespace, text(bound, "name")).await?;
        if text(&pod, "metadata.uid") != uid {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Ok(Some(why));
        }
        if text(&pod, "spec.nodeName") != node {
            let why = "node requested token bound to a pod scheduled on a different node";
            return Ok(Some(why.to_owned()));
        }
        audiences::refuse(&self.storages, request, &pod, object).await
    }
}

#[async_trait]
impl Plugin for NodeRestriction {
    fn name(&self) -> &'static str {
        "NodeRestriction"
    }

    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        let Some(node) = node_of(&request.context.user) else {
            return Ok(());
        };
        if node.is_empty() {
            let user = &request.context.user.name;
            return Err(request.forbid(
                object,
                format!("could not determine node from user {user:?}"),
            ));
        }
        if request.operation == Operation::Connect {
            return Ok(());
        }
        let group = &request.resource.group_version.group;
        let refusal = match (group.as_str(), request.resource.plural.as_str()) {
            ("", "pods") => self.refuse_pod(node, request, object).await?,
            ("", "nodes") => own_node::refuse(node, request, object),
            ("", "persistentvolumeclaims") => refuse_claim(node, request, object),
            ("", "serviceaccounts")
                if request.subresource() == "token" && request.operation == Operation::Create =>
            {
                self.refuse_token(node, request, object).await?
            }
            ("coordination.k8s.io", "leases") => refuse_lease(node, request, object),
            ("storage.k8s.io", "csinodes") => refuse_other(node, request, object, "CSINode"),
            ("resource.k8s.io", "resourceslices") => refuse_slice(node, request, object),
            ("certificates.k8s.io", "certificatesigningrequests") => {
                refuse_signing(node, request, object)
            }
            _ => None,
        };
        refusal.map_or(Ok(()), |why| Err(request.forbid(object, why)))
    }
}

/// Returns why a kubelet may not write the status of a pod.
fn refuse_status(node: &str, old: &Value, pod: &Value) -> Option<String> {
    if text(old, "spec.nodeName") != node {
        return Some(format!(
            "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
        ));
    }
    let labels = |pod: &Value| {
        let labels = get(pod, "metadata.labels").and_then(Value::as_object);
        labels.filter(|it| !it.is_empty()).cloned()
    };
    if labels(old) != labels(pod) {
        return Some(format!(
            "node {node:?} cannot update labels through pod status"
        ));
    }
    // The node may read the objects that these fields name.
    if claims(old) != claims(pod) {
        return Some(format!(
            "node {node:?} cannot update resource claim statues"
        ));
    }
    let extended = |pod: &Value| {
        let status = get(pod, "status.extendedResourceClaimStatus").filter(|it| !it.is_null())?;
        let claim = text(status, "resourceClaimName").to_owned();
        Some((claim, list(status, "requestMappings").to_vec()))
    };
    (extended(old) != extended(pod))
        .then(|| format!("node {node:?} cannot update extended resource claim status"))
}

/// Returns the names of a pod's claims for devices, and the claims that were made for them.
fn claims(pod: &Value) -> Vec<(&str, Option<&str>)> {
    let claims = list(pod, "status.resourceClaimStatuses").iter();
    claims
        .map(|it| {
            (
                text(it, "name"),
                it.get("resourceClaimName").and_then(Value::as_str),
            )
        })
        .collect()
}

/// Returns why a kubelet may not write a ResourceSlice: it is another node's. Who may update one the Node authorizer
/// decides.
fn refuse_slice(node: &str, request: &Request<'_>, object: &Value) -> Option<String> {
    let (slice, what) = match request.operation {
        Operation::Create => (object, "create"),
        Operation::Delete => (request.old?, "delete"),
        _ => return None,
    };
    (text(slice, "spec.nodeName") != node).then(|| {
        format!("can only {what} ResourceSlice with the same NodeName as the requesting node")
    })
}

/// Returns why a kubelet may not write a lease: it is not that of its node.
fn refuse_lease(node: &str, request: &Request<'_>, object: &Value) -> Option<String> {
    if request.namespace != LEASES {
        return Some(format!(
            "can only access leases in the {LEASES:?} system namespace"
        ));
    }
    refuse_other(node, request, object, "node lease")
}

/// Returns why a kubelet may not request a certificate: its subject is another kubelet's.
fn refuse_signing(node: &str, request: &Request<'_>, object: &Value) -> Option<String> {
    if request.operation != Operation::Create
        || !KUBELET_SIGNERS.contains(&text(object, "spec.signerName"))
    {
        return None;
    }
    let pem = STANDARD.decode(text(object, "spec.request"));
    let csr = match SigningRequest::read(&pem.unwrap_or_default()) {
        Ok(csr) => csr,
        Err(why) => return Some(format!("unable to parse csr: {why}")),
    };
    let name = format!("system:node:{node}");
    (csr.common_name() != name).then(|| format!("can only create a node CSR with CN={name}"))
}

/// Returns why a kubelet may not write a claim: it may change only the fields about the size of its volume.
fn refuse_claim(node: &str, request: &Request<'_>, object: &Value) -> Option<String> {
    if request.subresource() != "status" {
        return Some("may only update PVC status".to_owned());
    }
    let Some(old) = request
        .old
        .filter(|_| request.operation == Operation::Update)
    else {
        let operation = request.operation.name();
        return Some(format!("unexpected operation {operation:?}"));
    };
    let rest = |claim: &Value| {
        let mut rest = claim.clone();
        let versions = ["metadata.resourceVersion", "metadata.managedFields"];
        for path in CLAIM_MEMBERS.iter().chain(&versions) {
            drop(remove(&mut rest, path));
        }
        if rest["status"] == serde_json::json!({}) {
            drop(remove(&mut rest, "status"));
        }
        rest
    };
    (rest(old) != rest(object)).then(|| {
        format!(
            "node {node:?} is not allowed to update fields other than status.quantity and status.conditions"
        )
    })
}

/// Returns why a kubelet may not write an object of another name than its node.
fn refuse_other(node: &str, request: &Request<'_>, object: &Value, kind: &str) -> Option<String> {
    // The name of what is created is that in the object.
    let name = match request.operation {
        Operation::Create => text(object, "metadata.name"),
        _ => request.name,
    };
    (name != node)
        .then(|| format!("can only access {kind} with the same name as the requesting node"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_status_of_pods_names_no_other_claims() {
        let pod = |status: Value| json!({"metadata": {"name": "p"}, "spec": {"nodeName": "a"}, "status": status});
        let claim = |name: &str| json!({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]});
        let extended = |name: &str, to: &str| {
            json!({"extendedResourceClaimStatus": {"resourceClaimName": name,
                "requestMappings": [{"containerName": "c", "resourceName": "r", "requestName": to}]}})
        };
        let refused = |old: Value, new: Value| refuse_status("a", &pod(old), &pod(new));
        let claims = Some("node \"a\" cannot update resource claim statues".to_owned());
        assert_eq!(refused(json!({}), claim("x")), claims);
        assert_eq!(refused(claim("x"), claim("y")), claims);
        assert_eq!(refused(claim("x"), json!({})), claims);
        let one = Some("node \"a\" cannot update extended resource claim status".to_owned());
        assert_eq!(refused(json!({}), extended("x", "r")), one);
        assert_eq!(refused(extended("x", "r"), extended("x", "s")), one);
        for same in [claim("x"), extended("x", "r")] {
            let mut changed = same.clone();
            changed["phase"] = "Running".into();
            assert_eq!(refused(same, changed), None);
        }
        let elsewhere = refuse_status("b", &pod(json!({})), &pod(json!({})));
        assert!(elsewhere.expect("another's pod").contains("set to itself"));
    }
}
