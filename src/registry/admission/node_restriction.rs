//! A kubelet writes its own node and the pods on it, and nothing of others. Kubernetes' NodeRestriction plugin.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::{Operation, Plugin, Request};
use crate::codec;
use crate::registry::Error;
use crate::registry::authorization::{MIRROR, node_of, referred_resources};
use crate::registry::resources::path::{get, list, remove, text};
use crate::storage::{GetOptions, Interface};

/// Labels of these domains say what a node is to the cluster. A kubelet sets some of them.
const SYSTEM_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const KUBELET_LABELS: [&str; 12] = [
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.kubernetes.io/region",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// What a kubelet tells of a claim: what has come of its growth.
const CLAIM_MEMBERS: [&str; 4] = [
    "status.allocatedResourceStatuses",
    "status.allocatedResources",
    "status.capacity",
    "status.conditions",
];
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

/// The pods, as they are stored.
#[derive(Debug)]
pub struct NodeRestriction {
    pods: Arc<dyn Interface>,
}

impl NodeRestriction {
    /// A restriction by the pods in this storage.
    #[must_use]
    pub fn new(pods: Arc<dyn Interface>) -> Self {
        Self { pods }
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Value>, Error> {
        let key = format!("/pods/{namespace}/{name}");
        match self.pods.get(&key, GetOptions::default()).await {
            Ok(pod) => codec::tree(&pod)
                .map(Some)
                .map_err(|error| Error::Internal(error.to_string())),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(Error::Storage(error)),
        }
    }

    /// Why a kubelet may not write a pod, or something below one.
    async fn refuse_pod(
        &self,
        node: &str,
        request: &Request<'_>,
        object: &Value,
    ) -> Result<Option<String>, Error> {
        let elsewhere = |pod: &Value| text(pod, "spec.nodeName") != node;
        Ok(match (request.subresource(), request.operation) {
            ("", Operation::Create) => refuse_mirror(node, object),
            ("", Operation::Delete) => request.old.filter(|old| elsewhere(old)).map(|_| {
                format!("node {node:?} can only delete pods with spec.nodeName set to itself")
            }),
            ("status", Operation::Update) => request.old.and_then(|old| {
                if elsewhere(old) {
                    return Some(format!(
                        "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
                    ));
                }
                let relabels = old["metadata"]["labels"] != object["metadata"]["labels"];
                relabels.then(|| format!("node {node:?} cannot update labels through pod status"))
            }),
            ("eviction", Operation::Create) => {
                let pod = self.pod(request.namespace, request.name).await?;
                pod.filter(|pod| elsewhere(pod)).map(|_| {
                    format!("node {node:?} can only evict pods with spec.nodeName set to itself")
                })
            }
            ("", operation) => Some(format!(
                "unexpected operation {:?}, node {node:?} can only create and delete mirror pods",
                operation.name()
            )),
            (other, _) => Some(format!(
                "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
            )),
        })
    }

    /// Why a kubelet may not have a token: it is for another's pods.
    async fn refuse_token(
        &self,
        node: &str,
        request: &Request<'_>,
        object: &Value,
    ) -> Result<Option<String>, Error> {
        let bound = get(object, "spec.boundObjectRef").unwrap_or(&Value::Null);
        if text(bound, "kind") != "Pod" || text(bound, "apiVersion") != "v1" {
            return Ok(Some("node requested token not bound to a pod".to_owned()));
        }
        let uid = text(bound, "uid");
        if uid.is_empty() {
            let why = "node requested token with a pod binding without a uid";
            return Ok(Some(why.to_owned()));
        }
        let pod = self.pod(request.namespace, text(bound, "name")).await?;
        let Some(pod) = pod.filter(|pod| text(pod, "metadata.uid") == uid) else {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record"
            );
            return Ok(Some(why));
        };
        let elsewhere = text(&pod, "spec.nodeName") != node;
        Ok(elsewhere.then(|| {
            "node requested token bound to a pod scheduled on a different node".to_owned()
        }))
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
        let version = &request.resource.group_version.group;
        let refusal = match (version.as_str(), request.resource.plural.as_str()) {
            ("", "pods") => self.refuse_pod(node, request, object).await?,
            ("", "nodes") => refuse_node(node, request, object),
            ("", "persistentvolumeclaims") => refuse_claim(node, request, object),
            ("", "serviceaccounts") if request.subresource() == "token" => {
                self.refuse_token(node, request, object).await?
            }
            ("coordination.k8s.io", "leases") => refuse_other(node, request, object, "lease"),
            ("storage.k8s.io", "csinodes") => refuse_other(node, request, object, "CSINode"),
            ("resource.k8s.io", "resourceslices") => refuse_slice(node, request, object),
            _ => None,
        };
        refusal.map_or(Ok(()), |why| Err(request.forbid(object, why)))
    }
}

/// Why a kubelet may not create a pod: it is not the shadow of one that it runs by itself.
fn refuse_mirror(node: &str, pod: &Value) -> Option<String> {
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
    if let Some(why) = refuse_owners(node, pod) {
        return Some(why);
    }
    let what = match *referred_resources(pod).first()? {
        "serviceaccounts" => "a service account",
        other => other,
    };
    Some(format!(
        "node {node:?} can not create pods that reference {what}"
    ))
}

/// Why a mirror pod may not have its owners: it has its node, and nobody else.
fn refuse_owners(node: &str, pod: &Value) -> Option<String> {
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

/// Why a kubelet may not write a ResourceSlice: it is another node's.
fn refuse_slice(node: &str, request: &Request<'_>, object: &Value) -> Option<String> {
    let slice = request.old.unwrap_or(object);
    let what = match request.operation {
        Operation::Create => "create",
        Operation::Delete => "delete",
        _ => "update",
    };
    (text(slice, "spec.nodeName") != node).then(|| {
        format!("can only {what} ResourceSlice with the same NodeName as the requesting node")
    })
}

/// Why a kubelet may not write a claim: it says no more of one than how large its volume has become.
fn refuse_claim(node: &str, request: &Request<'_>, object: &Value) -> Option<String> {
    if request.subresource() != "status" {
        return Some("may only update PVC status".to_owned());
    }
    let Some(old) = request.old else {
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

/// Why a kubelet may not write a node: it is another's, or what it says of itself is not for it to say.
fn refuse_node(node: &str, request: &Request<'_>, object: &Value) -> Option<String> {
    let name = if request.name.is_empty() {
        text(object, "metadata.name")
    } else {
        request.name
    };
    if name != node {
        return Some(format!(
            "node {node:?} is not allowed to modify node {name:?}"
        ));
    }
    let forbidden = forbidden_labels(request.old, object);
    if !forbidden.is_empty() {
        let which = forbidden.join(", ");
        return Some(match request.operation {
            Operation::Create => {
                format!("node {node:?} is not allowed to set the following labels: {which}")
            }
            _ => format!("is not allowed to modify labels: {which}"),
        });
    }
    let old = request
        .old
        .filter(|_| request.operation == Operation::Update)?;
    let changes = |path: &str| get(old, path) != get(object, path);
    if changes("spec.taints") {
        return Some(format!("node {node:?} is not allowed to modify taints"));
    }
    if changes("metadata.ownerReferences") {
        return Some(format!(
            "node {node:?} is not allowed to modify ownerReferences"
        ));
    }
    None
}

/// The labels that differ and are not the kubelet's to set.
fn forbidden_labels<'a>(old: Option<&'a Value>, object: &'a Value) -> Vec<&'a str> {
    let none = Value::Null;
    let labels = |of: &'a Value| of["metadata"]["labels"].as_object();
    let (old, new) = (old.and_then(labels), labels(object));
    let all = old
        .into_iter()
        .chain(new)
        .flatten()
        .map(|(name, _)| name.as_str());
    let differs = |name: &&str| {
        let value = |labels: Option<&'a serde_json::Map<String, Value>>| {
            labels
                .and_then(|labels| labels.get(*name))
                .cloned()
                .unwrap_or_else(|| none.clone())
        };
        value(old) != value(new)
    };
    let mut forbidden: Vec<&str> = all
        .filter(differs)
        .filter(|name| is_restricted(name))
        .collect();
    forbidden.sort_unstable();
    forbidden.dedup();
    forbidden
}

fn is_restricted(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else {
        return false;
    };
    let within = |known: &str| domain == known || domain.ends_with(&format!(".{known}"));
    if within(RESTRICTED_DOMAIN) {
        return true;
    }
    let allowed = KUBELET_LABELS.contains(&label) || KUBELET_DOMAINS.iter().any(|it| within(it));
    !allowed && SYSTEM_DOMAINS.iter().any(|it| within(it))
}

fn refuse_other(node: &str, request: &Request<'_>, object: &Value, kind: &str) -> Option<String> {
    let name = if request.name.is_empty() {
        text(object, "metadata.name")
    } else {
        request.name
    };
    (name != node)
        .then(|| format!("can only access {kind} with the same name as the requesting node"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelets_say_some_things_of_their_nodes() {
        for (label, restricted) in [
            ("zone", false),
            ("example.com/zone", false),
            ("kubernetes.io/hostname", false),
            ("node.kubernetes.io/anything", false),
            ("kubernetes.io/role", true),
            ("node-role.kubernetes.io/control-plane", true),
            ("x.k8s.io/y", true),
            ("node-restriction.kubernetes.io/x", true),
            ("a.node-restriction.kubernetes.io/x", true),
        ] {
            assert_eq!(is_restricted(label), restricted, "{label}");
        }
    }
}
