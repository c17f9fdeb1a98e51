//! Tests of the tables of Deployments and other controllers of pods.

use serde_json::json;

use super::cells;

#[test]
fn workloads_show_replicas_and_containers() {
    let selector = json!({"matchLabels": {"app": "x"}});
    let template = json!({"spec": {"nodeSelector": {"disk": "ssd"},
        "containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j"}]}});
    let spec = json!({"replicas": 3, "selector": selector, "template": template});
    let status = json!({"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2,
        "availableReplicas": 1, "desiredNumberScheduled": 5, "currentNumberScheduled": 4,
        "numberReady": 3, "updatedNumberScheduled": 2, "numberAvailable": 1});
    let object = json!({"spec": spec, "status": status});
    for (kind, expected) in [
        ("Deployment", json!(["1/3", 2, 1, "a,b", "i:1,j", "app=x"])),
        ("ReplicaSet", json!([3, 2, 1, "a,b", "i:1,j", "app=x"])),
        ("StatefulSet", json!(["1/3", "a,b", "i:1,j"])),
        (
            "DaemonSet",
            json!([5, 4, 3, 2, 1, "disk=ssd", "a,b", "i:1,j", "app=x"]),
        ),
    ] {
        assert_eq!(cells("apps", kind, object.clone()), expected);
    }
    let mut controller = object;
    controller["spec"]["selector"] = json!({"app": "x"});
    assert_eq!(
        cells("", "ReplicationController", controller),
        json!([3, 2, 1, "a,b", "i:1,j", "app=x"])
    );
    let mut template = template;
    template["metadata"] = json!({"labels": {"app": "x"}});
    let template = json!({"template": template});
    assert_eq!(
        cells("", "PodTemplate", template),
        json!(["a,b", "i:1,j", "app=x"])
    );
    let budget = json!({"spec": {"maxUnavailable": "30%"}, "status": {"disruptionsAllowed": 2}});
    let budget = cells("policy", "PodDisruptionBudget", budget);
    assert_eq!(budget, json!(["N/A", "30%", 2]));
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true});
    let revision = json!({"metadata": {"ownerReferences": [owner]}, "revision": 7});
    assert_eq!(
        cells("apps", "ControllerRevision", revision),
        json!(["daemonset.apps/d", 7])
    );
    assert_eq!(
        cells("apps", "ControllerRevision", json!({})),
        json!(["<none>", 0])
    );
}
