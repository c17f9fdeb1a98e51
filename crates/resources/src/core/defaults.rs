//! Defaults of the core group, pods and volumes aside.
//!
//! Follows pkg/apis/core/v1/defaults.go, of Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, remove, set, text};
use serde_json::{Value, json};

use crate::defaults::DefaultRule::{self, Fill, In, Quantities, Run, Set, When, With, Zero};
use crate::defaults::Literal::{Empty, Int, Null, Text, True};
use crate::defaults::is_absent;
use crate::strategy::stored::NAME_LABEL;

/// Defaults of namespaces, which are labelled with their name.
pub(crate) const NAMESPACE: &[DefaultRule] = &[
    Zero("spec", Empty),
    Set("status.phase", Text("Active")),
    Run(&["metadata.labels"], label_with_name),
];

pub(crate) const SECRET: &[DefaultRule] = &[Set("type", Text("Opaque"))];

pub(crate) const SERVICE: &[DefaultRule] = &[
    Set("spec.sessionAffinity", Text("None")),
    When(
        "spec.sessionAffinity",
        &["ClientIP"],
        &[Set(
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
            Int(3 * 60 * 60),
        )],
    ),
    When(
        "spec.sessionAffinity",
        &["None"],
        &[Run(&[], |service| {
            drop(remove(service, "spec.sessionAffinityConfig"));
        })],
    ),
    Set("spec.type", Text("ClusterIP")),
    In(
        "spec.ports[]",
        &[
            Set("protocol", Text("TCP")),
            Run(&["targetPort"], target_the_port),
        ],
    ),
    When(
        "spec.type",
        &["NodePort", "LoadBalancer"],
        &[Set("spec.externalTrafficPolicy", Text("Cluster"))],
    ),
    When(
        "spec.type",
        &["ClusterIP"],
        &[With(
            "spec.externalIPs",
            &[Set("spec.externalTrafficPolicy", Text("Cluster"))],
        )],
    ),
    When(
        "spec.type",
        &["NodePort", "LoadBalancer", "ClusterIP"],
        &[Set("spec.internalTrafficPolicy", Text("Cluster"))],
    ),
    When(
        "spec.type",
        &["LoadBalancer"],
        &[
            Set("spec.allocateLoadBalancerNodePorts", True),
            In(
                "status.loadBalancer.ingress[]",
                &[With("ip", &[Set("ipMode", Text("VIP"))])],
            ),
        ],
    ),
];

pub(crate) const ENDPOINTS: &[DefaultRule] =
    &[In("subsets[].ports[]", &[Set("protocol", Text("TCP"))])];

/// Defaults of nodes. Members that the kubelet left out are written with empty values.
pub(crate) const NODE: &[DefaultRule] = &[
    Zero("spec", Empty),
    Quantities("status.capacity"),
    Quantities("status.allocatable"),
    With(
        "status.capacity",
        &[Fill("status.allocatable", allocate_the_capacity)],
    ),
    In(
        "status.conditions[]",
        &[
            Set("lastHeartbeatTime", Null),
            Set("lastTransitionTime", Null),
        ],
    ),
    Set("status.daemonEndpoints.kubeletEndpoint.Port", Int(0)),
    Set("status.nodeInfo", Empty),
    In(
        "status.nodeInfo",
        &[
            Set("machineID", Text("")),
            Set("systemUUID", Text("")),
            Set("bootID", Text("")),
            Set("kernelVersion", Text("")),
            Set("osImage", Text("")),
            Set("containerRuntimeVersion", Text("")),
            Set("kubeletVersion", Text("")),
            Set("kubeProxyVersion", Text("")),
            Set("operatingSystem", Text("")),
            Set("architecture", Text("")),
        ],
    ),
];

pub(crate) const LIMIT_RANGE: &[DefaultRule] = &[
    Zero("spec.limits", Null),
    In(
        "spec.limits[]",
        &[
            Quantities("max"),
            Quantities("min"),
            Quantities("default"),
            Quantities("defaultRequest"),
            Quantities("maxLimitRequestRatio"),
            When("type", &["Container"], LIMITS_OF_CONTAINERS),
        ],
    ),
];

/// The default limit of containers is the maximum, and the default request that limit or else the minimum.
const LIMITS_OF_CONTAINERS: &[DefaultRule] = &[
    With(
        "max",
        &[Fill("default", |item| take_over(item, "default", "max"))],
    ),
    With(
        "default",
        &[Fill("defaultRequest", |item| {
            take_over(item, "defaultRequest", "default")
        })],
    ),
    With(
        "min",
        &[Fill("defaultRequest", |item| {
            take_over(item, "defaultRequest", "min")
        })],
    ),
];

pub(crate) const RESOURCE_QUOTA: &[DefaultRule] = &[
    Zero("spec", Empty),
    Quantities("spec.hard"),
    Quantities("status.hard"),
    Quantities("status.used"),
];

fn label_with_name(namespace: &mut Value) {
    let name = text(namespace, "metadata.name").to_owned();
    if name.is_empty() {
        return;
    }
    let labels = namespace.get_mut("metadata").and_then(Value::as_object_mut);
    let labels = labels.map(|metadata| {
        metadata
            .entry("labels")
            .or_insert_with(|| Value::Object(serde_json::Map::new()))
    });
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.insert(NAME_LABEL.to_owned(), name.into());
    }
}

/// Sets the target port of a service's port to the port itself, if there is none.
fn target_the_port(port: &mut Value) {
    let missing = match get(port, "targetPort") {
        None => true,
        Some(target) => target == 0 || target == "",
    };
    if let (true, Some(number)) = (missing, get(port, "port").cloned()) {
        set(port, "targetPort", number);
    }
}

fn allocate_the_capacity(node: &mut Value) {
    if is_absent(node, "status.allocatable")
        && let Some(capacity) = get(node, "status.capacity").cloned()
    {
        set(node, "status.allocatable", capacity);
    }
}

/// Adds quantities of one map of a limit to another that does not name them.
fn take_over(item: &mut Value, to: &str, from: &str) {
    let source = get(item, from).and_then(Value::as_object).cloned();
    let Some(members) = item.as_object_mut() else {
        return;
    };
    for (name, quantity) in source.unwrap_or_default() {
        let target = members.entry(to).or_insert_with(|| json!({}));
        if let Some(target) = target.as_object_mut() {
            target.entry(name).or_insert(quantity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults::apply;

    #[test]
    fn a_service_is_completed() {
        let mut service = json!({"spec": {"selector": {"app": "d"}, "ports": [{"port": 80}]}});
        apply(SERVICE, &mut service);
        assert_eq!(
            service,
            json!({
                "spec": {
                    "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
                    "selector": {"app": "d"},
                    "type": "ClusterIP",
                    "sessionAffinity": "None",
                    "internalTrafficPolicy": "Cluster",
                },
            })
        );
    }

    #[test]
    fn a_node_allocates_its_capacity() {
        let mut node = json!({"status": {"capacity": {"cpu": "4"},
            "conditions": [{"type": "Ready"}]}});
        apply(NODE, &mut node);
        assert_eq!(node["status"]["allocatable"], json!({"cpu": "4"}));
        assert_eq!(
            node["status"]["conditions"],
            json!([{"type": "Ready", "lastHeartbeatTime": null, "lastTransitionTime": null}])
        );
        assert_eq!(node["status"]["nodeInfo"]["bootID"], "");
    }

    #[test]
    fn default_limits_follow_the_bounds() {
        let mut range = json!({"spec": {"limits": [{"type": "Container",
            "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1Gi"}}]}});
        apply(LIMIT_RANGE, &mut range);
        let item = &range["spec"]["limits"][0];
        assert_eq!(item["default"], json!({"cpu": "2"}));
        assert_eq!(item["defaultRequest"], json!({"cpu": "2", "memory": "1Gi"}));
    }
}
