//! Rollouts of a deployment, whose controller the test plays.

use serde_json::{Value, json};

use super::steps::Says::*;
use super::*;

const REVISION: &str = "deployment.kubernetes.io/revision";

#[tokio::test]
async fn deployments_are_rolled_out_and_back() {
    over_each_store("rollouts", &[], |kubectl| {
        kubectl.rolls_out();
        kubectl.rolls_back();
        kubectl.knows_when_others_are_done();
        for kind in ["StatefulSet", "DaemonSet"] {
            kubectl.rolls_others_back(kind);
        }
    })
    .await;
}

impl Kubectl {
    fn rolls_out(&self) {
        self.steps(&[
            (
                "create deployment web --image=nginx:1 --replicas=2",
                Exactly("deployment.apps/web created"),
            ),
            (
                "annotate deployment web kubernetes.io/change-cause=first",
                Has("annotated"),
            ),
            (
                "rollout history deployment web",
                Has("No rollout history found"),
            ),
            (
                "rollout status deployment web --watch=false",
                Exactly("Waiting for deployment spec update to be observed..."),
            ),
        ]);
        let status = ["rollout", "status", "deployment/web", PATIENT];
        let watching = self
            .command(&status)
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl");
        self.reconcile();
        let watched = watching.wait_with_output().expect("kubectl");
        let said = String::from_utf8_lossy(&watched.stdout);
        assert!(
            said.ends_with("deployment \"web\" successfully rolled out\n"),
            "{said}"
        );
        self.steps(&[
            (
                "set image deployment/web nginx=nginx:2",
                Exactly("deployment.apps/web image updated"),
            ),
            (
                "annotate deployment web kubernetes.io/change-cause=second --overwrite",
                Has("annotated"),
            ),
        ]);
        self.reconcile();
        self.steps(&[
            ("rollout status deployment web", Exactly("deployment \"web\" successfully rolled out")),
            (
                "rollout history deployment web",
                Exactly("deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         first\n2         second"),
            ),
            ("rollout history deployment web --revision=1", Has("nginx:1")),
            ("rollout history deployment web --revision=9", Fails("unable to find the specified revision")),
            ("describe deployment web", Has("NewReplicaSet:   web-")),
        ]);
    }

    fn rolls_back(&self) {
        let image = "get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}'";
        self.steps(&[
            (
                "rollout undo deployment web --dry-run=server",
                Has("(server dry run)"),
            ),
            (image, Exactly("nginx:2")),
            ("rollout undo deployment web", Has("rolled back")),
            (image, Exactly("nginx:1")),
        ]);
        self.reconcile();
        self.steps(&[
            (
                "rollout history deployment web",
                Exactly("deployment.apps/web \nREVISION  CHANGE-CAUSE\n2         second\n3         first"),
            ),
            ("rollout undo deployment web --to-revision=2", Has("rolled back")),
            (image, Exactly("nginx:2")),
            ("rollout undo deployment web --to-revision=9", Fails("unable to find specified revision 9 in history")),
            ("rollout pause deployment web", Exactly("deployment.apps/web paused")),
            ("rollout pause deployment web", Fails("is already paused")),
            ("rollout undo deployment web --to-revision=3", Fails("cannot rollback a paused deployment")),
            ("rollout resume deployment web", Exactly("deployment.apps/web resumed")),
            ("rollout restart deployment web", Exactly("deployment.apps/web restarted")),
            (
                "get deployment web -o jsonpath='{.spec.template.metadata.annotations}'",
                Has("kubectl.kubernetes.io/restartedAt"),
            ),
            ("delete rs -l app=web", Has("deleted")),
            ("delete deployment web", Has("deleted")),
        ]);
    }

    fn knows_when_others_are_done(&self) {
        let kinds = [
            (
                "StatefulSet",
                json!({"replicas": 1, "serviceName": "s"}),
                json!({"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
                    "currentRevision": "r", "updateRevision": "r"}),
                "partitioned roll out complete",
            ),
            (
                "DaemonSet",
                json!({}),
                json!({"desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberAvailable": 1,
                    "currentNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 1}),
                "daemon set \"other\" successfully rolled out",
            ),
        ];
        for (kind, mut spec, mut status, done) in kinds {
            spec["selector"] = json!({"matchLabels": {"a": "b"}});
            spec["template"] = json!({"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}});
            if kind == "StatefulSet" {
                spec["updateStrategy"] = json!({"rollingUpdate": {"partition": 0}});
            }
            let object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "other"}, "spec": spec});
            let file = self.file("other.json", &object.to_string());
            self.ok(&["create", "-f", &file]);
            let said = self.quietly(&format!("rollout status {kind} other --watch=false"));
            assert!(said.starts_with("Waiting for"), "{said}");
            status["observedGeneration"] = json!(1);
            self.patch(
                &format!("{kind} other --subresource=status"),
                &json!({"status": status}),
            );
            let said = self.quietly(&format!("rollout status {kind} other"));
            assert!(said.contains(done) || said.contains("complete"), "{said}");
            self.ok(&["rollout", "restart", kind, "other"]);
            let generation =
                self.json(&format!("get {kind} other"))["metadata"]["generation"].clone();
            assert_eq!(generation, 2, "{kind}");
            self.ok(&["delete", kind, "other"]);
        }
    }

    /// Rolls back what its controller keeps revisions of.
    fn rolls_others_back(&self, kind: &str) {
        let resource = format!("{}.apps", kind.to_lowercase());
        let mut object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "kept"},
            "spec": {"selector": {"matchLabels": {"kept": "yes"}}, "template": {
                "metadata": {"labels": {"kept": "yes"}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}}});
        if kind == "StatefulSet" {
            object["spec"]["serviceName"] = json!("kept");
        }
        let file = self.file("kept.json", &object.to_string());
        self.ok(&["create", "-f", &file]);
        self.note_revision(kind, 1);
        let image = format!("get {kind} kept -o jsonpath='{{..containers[0].image}}'");
        let history = format!("rollout history {kind} kept");
        let undo = format!("rollout undo {kind} kept");
        self.quietly(&format!("set image {kind}/kept c=nginx:2"));
        self.note_revision(kind, 2);
        let both = "REVISION  CHANGE-CAUSE\n1         <none>\n2         <none>";
        let told = format!("{resource}/kept \n{both}");
        self.steps(&[
            (&history, Exactly(&told)),
            (&format!("{history} --revision=1"), Has("nginx:1")),
            (&format!("{history} --revision=2"), Has("nginx:2")),
            (
                &format!("{undo} --to-revision=9"),
                Fails("unable to find specified revision 9"),
            ),
            (&format!("{undo} --dry-run=server"), Has("(server dry run)")),
            (&image, Exactly("nginx:2")),
            (&undo, Exactly(&format!("{resource}/kept rolled back"))),
            (&image, Exactly("nginx:1")),
        ]);
        self.patch("controllerrevision kept-1", &json!({"revision": 3}));
        let later = "REVISION  CHANGE-CAUSE\n2         <none>\n3         <none>";
        let told = format!("{resource}/kept \n{later}");
        self.steps(&[
            (&history, Exactly(&told)),
            (&format!("{undo} --to-revision=2"), Has("rolled back")),
            (&image, Exactly("nginx:2")),
            ("delete controllerrevisions -l kept", Has("deleted")),
            (&format!("delete {kind} kept"), Has("deleted")),
        ]);
    }

    /// Keeps each template as a patch, as the controllers of stateful sets and daemon sets do.
    fn note_revision(&self, kind: &str, number: u32) {
        let object = self.json(&format!("get {kind} kept"));
        let mut template = object["spec"]["template"].clone();
        template["$patch"] = json!("replace");
        let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": "kept",
            "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true});
        let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": format!("kept-{number}"), "labels": {"kept": "yes"},
                "ownerReferences": [owner]},
            "data": {"spec": {"template": template}}, "revision": number});
        let file = self.file("revision.json", &revision.to_string());
        self.ok(&["create", "-f", &file]);
    }

    /// Does the work of the deployment controller: the template's replica set gets the newest revision, and the status
    /// says that all is done.
    fn reconcile(&self) {
        let deployment = self.json("get deployment web");
        let sets = self.json("get replicasets -l app=web");
        let sets = sets["items"].as_array().expect("a list");
        let revision = 1 + sets.iter().map(revision_of).max().unwrap_or(0);
        let wanted = &deployment["spec"]["template"]["spec"];
        let cause = &deployment["metadata"]["annotations"]["kubernetes.io/change-cause"];
        let found = sets
            .iter()
            .find(|set| set["spec"]["template"]["spec"] == *wanted);
        if let Some(set) = found {
            let name = set["metadata"]["name"].as_str().expect("a name");
            let annotations =
                json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
            self.patch(&format!("replicaset {name}"), &annotations);
        } else {
            let set = replica_set(&deployment, revision, cause);
            let file = self.file("replicaset.json", &set.to_string());
            self.ok(&["create", "-f", &file]);
        }
        // The annotations count as a generation; the status comes after them.
        let mut annotations = json!({REVISION: revision.to_string()});
        if let Some(set) = found {
            let cause = "kubernetes.io/change-cause";
            annotations[cause] = set["metadata"]["annotations"][cause].clone();
        }
        self.patch(
            "deployment web",
            &json!({"metadata": {"annotations": annotations}}),
        );
        let generation = self.json("get deployment web")["metadata"]["generation"].clone();
        let replicas = &deployment["spec"]["replicas"];
        let condition =
            |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason});
        let status = json!({"observedGeneration": generation, "replicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
            "conditions": [condition("Available", "MinimumReplicasAvailable"),
                condition("Progressing", "NewReplicaSetAvailable")]});
        self.patch(
            "deployment web --subresource=status",
            &json!({"status": status}),
        );
    }

    fn patch(&self, what: &str, patch: &Value) {
        self.quietly(&format!("patch {what} --type=merge -p '{patch}'"));
    }
}

fn revision_of(set: &Value) -> u32 {
    let revision = set["metadata"]["annotations"][REVISION].as_str();
    revision.expect("a revision").parse().expect("a number")
}

fn replica_set(deployment: &Value, revision: u32, cause: &Value) -> Value {
    let hash = format!("h{revision}");
    let labels = json!({"app": "web", "pod-template-hash": hash});
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"] = labels.clone();
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("web-{hash}"), "labels": labels,
            "annotations": {REVISION: revision.to_string(), "kubernetes.io/change-cause": cause},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                "uid": deployment["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"replicas": deployment["spec"]["replicas"], "selector": {"matchLabels": labels},
            "template": template}})
}
