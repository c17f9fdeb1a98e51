//! Taints, cordons and drains.

use super::steps::Says::*;
use super::*;

/// A node, and on it a pod that nobody keeps, one of a replica set and one of a daemon set.
const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: worker, labels: {kubernetes.io/hostname: worker}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: kept}
spec:
  selector: {matchLabels: {app: kept}}
  template:
    metadata: {labels: {app: kept}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: i}]}
";

#[tokio::test]
async fn nodes_are_tainted_and_drained() {
    over_each_store("nodes", &[], |kubectl| {
        kubectl.taints();
        kubectl.drains();
        kubectl.drains_as_budgets_allow();
    })
    .await;
}

impl Kubectl {
    fn taints(&self) {
        let file = self.file("node.yaml", NODE);
        let taints = "get node worker -o jsonpath='{.spec.taints[*].value}'";
        self.ok(&["create", "-f", &file]);
        self.steps(&[
            (
                "taint nodes worker disk=slow:NoSchedule",
                Exactly("node/worker tainted"),
            ),
            (
                "taint nodes worker disk=full:NoSchedule",
                Fails("--overwrite is false"),
            ),
            (
                "taint nodes worker disk=full:NoSchedule --overwrite",
                Exactly("node/worker modified"),
            ),
            (taints, Exactly("full")),
            (
                "taint nodes worker disk:NoSchedule-",
                Exactly("node/worker untainted"),
            ),
            (
                "taint nodes worker disk=full:Sometimes",
                Fails("invalid taint effect: Sometimes"),
            ),
            (
                "cordon worker --dry-run=server",
                Exactly("node/worker cordoned (server dry run)"),
            ),
            ("cordon worker", Exactly("node/worker cordoned")),
            ("cordon worker", Exactly("node/worker already cordoned")),
            ("get node worker", Has("SchedulingDisabled")),
            ("uncordon worker", Exactly("node/worker uncordoned")),
            ("uncordon worker", Exactly("node/worker already uncordoned")),
            ("describe node worker", Has("Unschedulable:      false")),
        ]);
    }

    fn drains(&self) {
        self.pod_on_the_node("alone", None);
        self.pod_on_the_node("kept-1", Some(("ReplicaSet", "kept")));
        self.pod_on_the_node("agent-1", Some(("DaemonSet", "agent")));
        // Disruption budgets are about pods that run.
        let running =
            r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
        let status = "--subresource=status --type=merge";
        self.quietly(&format!("patch pod kept-1 {status} -p {running}"));
        let pods = "get pods -o name --sort-by=.metadata.name";
        let all = Exactly("pod/agent-1\npod/alone\npod/kept-1");
        self.steps(&[
            (
                "drain worker --dry-run=client",
                Fails("cannot delete DaemonSet-managed Pods"),
            ),
            (
                "drain worker --dry-run=server --ignore-daemonsets",
                Fails("declare no controller (use --force to override)"),
            ),
            (
                "drain worker --dry-run=client --ignore-daemonsets --force",
                Has("evicting pod default/kept-1 (dry run)"),
            ),
            (
                "drain worker --dry-run=server --ignore-daemonsets --force",
                Has("evicting pod default/kept-1 (server dry run)"),
            ),
            (pods, all),
            (
                "describe node worker",
                Has("default                     kept-1"),
            ),
            (
                "drain worker --ignore-daemonsets --force --grace-period=0",
                Has("node/worker drained"),
            ),
            (pods, Exactly("pod/agent-1")),
            (
                "delete pod agent-1 --grace-period=0 --force",
                Has("deleted"),
            ),
            ("delete node/worker rs/kept ds/agent", Has("deleted")),
        ]);
    }

    fn drains_as_budgets_allow(&self) {
        let file = self.file("node.yaml", NODE);
        self.ok(&["create", "-f", &file]);
        self.pod_on_the_node("kept-1", Some(("ReplicaSet", "kept")));
        let status = "--subresource=status --type=merge";
        let running =
            r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
        self.quietly(&format!("patch pod kept-1 {status} -p {running}"));
        self.quietly("create poddisruptionbudget kept --selector=app=kept --min-available=1");
        // The part of the controller of budgets.
        let found = |allowed: u32| {
            let healthy = allowed + 1;
            let found = format!(
                r#"{{"status":{{"observedGeneration":1,"desiredHealthy":1,"currentHealthy":{healthy},"disruptionsAllowed":{allowed}}}}}"#
            );
            self.quietly(&format!("patch pdb kept {status} -p {found}"));
        };
        found(0);
        self.steps(&[
            (
                "drain worker --grace-period=0 --timeout=2s",
                Fails("Cannot evict pod as it would violate the pod's disruption budget."),
            ),
            ("get pods -o name", Exactly("pod/kept-1")),
        ]);
        found(1);
        let pods = "{.status.disruptedPods}";
        self.steps(&[
            (
                "drain worker --grace-period=0 --timeout=120s",
                Has("node/worker drained"),
            ),
            (&format!("get pdb kept -o jsonpath={pods}"), Has("kept-1")),
            ("get pods -o name", Exactly("")),
            ("get pdb kept", Has("0                     ")),
        ]);
        self.pod_on_the_node("kept-1", Some(("ReplicaSet", "kept")));
        self.quietly(&format!("patch pod kept-1 {status} -p {running}"));
        self.steps(&[
            (
                "drain worker --grace-period=0 --timeout=120s --disable-eviction",
                Has("node/worker drained"),
            ),
            ("get pods -o name", Exactly("")),
            (
                "delete node/worker rs/kept ds/agent pdb/kept",
                Has("deleted"),
            ),
        ]);
    }

    fn pod_on_the_node(&self, name: &str, owner: Option<(&str, &str)>) {
        let owners = owner.map(|(kind, name)| {
            let uid = self.json(&format!("get {kind} {name}"))["metadata"]["uid"].clone();
            serde_json::json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid,
                "controller": true}])
        });
        let labels = serde_json::json!({"app": owner.map_or("none", |(_, name)| name)});
        let pod = serde_json::json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels, "ownerReferences": owners},
            "spec": {"nodeName": "worker", "containers": [{"name": "c", "image": "i"}]}});
        let file = self.file("pod.json", &pod.to_string());
        self.ok(&["create", "-f", &file]);
    }
}
