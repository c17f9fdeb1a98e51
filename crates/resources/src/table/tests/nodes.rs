//! Tests of the table of Nodes.

use serde_json::json;

use super::cells;

#[test]
fn nodes_show_their_state() {
    let node = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/control-plane": "",
            "kubernetes.io/role": "edge", "node-role.kubernetes.io/": "x"}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.5"},
                {"type": "ExternalIP", "address": "1.2.3.4"}],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "osImage": "Debian", "kernelVersion": "6.1",
                "architecture": "amd64", "containerRuntimeVersion": "containerd://2.0"}}});
    assert_eq!(
        cells("", "Node", node),
        json!([
            "Ready,SchedulingDisabled",
            "control-plane,edge",
            "v1.36.2",
            "10.0.0.5",
            "1.2.3.4",
            "Debian",
            "6.1 (amd64)",
            "containerd://2.0"
        ])
    );
    let lost = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let unknown = json!([
        "<none>",
        "",
        "<none>",
        "<none>",
        "<unknown>",
        "<unknown>",
        "<unknown>"
    ]);
    for (node, status) in [(lost, "NotReady"), (json!({}), "Unknown")] {
        let found = cells("", "Node", node);
        assert_eq!(found[0], status);
        assert_eq!(json!(found.as_array().expect("cells")[1..]), unknown);
    }
}
