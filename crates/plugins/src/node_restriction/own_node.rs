//! The restrictions on a kubelet that writes its own node.

use ringwatch_apimachinery::path::{get, list, text};
use ringwatch_registry::{Operation, Request};
use serde_json::Value;

/// The domains of labels that the cluster assigns to nodes. A kubelet may set some of these labels.
const SYSTEM_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];
const KUBELET_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const KUBELET_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

/// Returns why a kubelet may not write a node: it is another node, or the write sets fields or labels that are not
/// the kubelet's to set.
pub(super) fn refuse(node: &str, request: &Request<'_>, object: &Value) -> Option<String> {
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
    match request.operation {
        Operation::Create => refuse_new(node, object),
        Operation::Update => refuse_change(node, request.old?, object),
        _ => None,
    }
}

fn config_source(node: &Value) -> Option<&Value> {
    get(node, "spec.configSource").filter(|it| !it.is_null())
}

fn refuse_new(node: &str, object: &Value) -> Option<String> {
    if config_source(object).is_some() {
        return Some(format!(
            "node {node:?} is not allowed to create pods with a non-nil configSource"
        ));
    }
    let forbidden = forbidden_labels(None, object);
    (!forbidden.is_empty()).then(|| {
        let which = forbidden.join(", ");
        format!("node {node:?} is not allowed to set the following labels: {which}")
    })
}

fn refuse_change(node: &str, old: &Value, object: &Value) -> Option<String> {
    let source = config_source(object);
    if source.is_some() && source != config_source(old) {
        return Some(format!(
            "node {node:?} is not allowed to update configSource to a new non-nil configSource"
        ));
    }
    let changes = |path: &str| list(old, path) != list(object, path);
    if changes("spec.taints") {
        return Some(format!("node {node:?} is not allowed to modify taints"));
    }
    if changes("metadata.ownerReferences") {
        return Some(format!(
            "node {node:?} is not allowed to modify ownerReferences"
        ));
    }
    let forbidden = forbidden_labels(Some(old), object);
    let which = forbidden.join(", ");
    (!forbidden.is_empty()).then(|| format!("is not allowed to modify labels: {which}"))
}

/// Returns the labels that differ and are not the kubelet's to set.
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
            ("failure-domain.kubernetes.io/region", true),
            ("node-role.kubernetes.io/control-plane", true),
            ("x.k8s.io/y", true),
            ("node-restriction.kubernetes.io/x", true),
            ("a.node-restriction.kubernetes.io/x", true),
        ] {
            assert_eq!(is_restricted(label), restricted, "{label}");
        }
    }
}
