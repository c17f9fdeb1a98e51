//! The Node on which pods run: there is always one, and it is ready.

use ringwatch::clock::Clock;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::{Error, path};
use serde_json::{Value, json};

use crate::controller::Next;
use crate::objects::ControllerObjects;

/// The name of the Node.
pub(super) const NAME: &str = "test-cluster";

/// The address of the Node, and of others that have none.
pub(super) const ADDRESS: &str = "172.18.0.2";

/// The taint that admission gives each new Node, until somebody finds that it is ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Creates the Node if there is none, and removes the taint of one that is not ready.
///
/// # Errors
/// Errors of the store.
pub(super) async fn ensure(nodes: &ControllerObjects<'_>, clock: &Clock) -> Result<Next, Error> {
    let found = match nodes.get("", NAME).await? {
        Some(found) => Some(found),
        None => nodes.create(node(&format_time(clock.wall()))).await?,
    };
    if let Some(found) = found.filter(is_tainted) {
        let change = |node: &mut Value| {
            let taints = path::list(node, "spec.taints").iter();
            let taints = taints.filter(|it| it["key"] != NOT_READY).cloned();
            node["spec"]["taints"] = taints.collect();
        };
        nodes.update(&found, "", change).await?;
    }
    Ok(Next::Done)
}

/// Returns the address at which pods of a node find it.
pub(super) fn address(node: &Value) -> &str {
    let mut addresses = path::list(node, "status.addresses").iter();
    let address = addresses.find(|it| it["type"] == "InternalIP");
    address
        .and_then(|it| it["address"].as_str())
        .unwrap_or(ADDRESS)
}

fn is_tainted(node: &Value) -> bool {
    let mut taints = path::list(node, "spec.taints").iter();
    taints.any(|it| it["key"] == NOT_READY)
}

/// Returns the Node as its kubelet registers it.
fn node(now: &str) -> Value {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let resources = json!({
        "cpu": "32",
        "memory": "256Gi",
        "pods": "1000",
        "ephemeral-storage": "1Ti",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
    });
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NAME,
            "labels": {
                "beta.kubernetes.io/arch": architecture,
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
                "kubernetes.io/hostname": NAME,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {"podCIDR": "10.244.0.0/16", "podCIDRs": ["10.244.0.0/16"], "providerID": "test-cluster://node"},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [
                {"type": "InternalIP", "address": ADDRESS},
                {"type": "Hostname", "address": NAME},
            ],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": architecture,
                "bootID": "",
                "containerRuntimeVersion": "test-cluster://1",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.0",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "test-cluster",
                "systemUUID": "",
            },
        },
    })
}
