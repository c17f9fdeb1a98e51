//! The verbs that change one thing, those that read, and the generators.

use super::*;

/// Commands that create objects.
const CREATES: &str = include_str!("creates.txt");

/// Commands that change objects.
const CHANGES: &str = include_str!("changes.txt");

/// Commands that read objects.
const READS: &str = include_str!("reads.txt");

const SEEN: &str = "
apiVersion: v1
kind: Event
metadata: {name: seen.1}
involvedObject: {apiVersion: v1, kind: Pod, name: seen, namespace: default, uid: UID}
type: Warning
reason: FailedScheduling
message: no nodes available
source: {component: test}
firstTimestamp: 2026-01-01T00:00:00Z
lastTimestamp: 2026-01-01T00:00:00Z
count: 1
";

#[tokio::test]
async fn every_verb_does_its_part() {
    over_each_store("verbs", &[], |kubectl| {
        kubectl.script(CREATES);
        kubectl.ends_the_namespace("made");
        kubectl.script(CHANGES);
        kubectl.scales_each_kind();
        kubectl.ok(&["run", "seen", "--image=i"]);
        let uid = kubectl.quietly("get pod seen -o jsonpath={.metadata.uid}");
        let events = kubectl.file("seen.yaml", &SEEN.replace("UID", &uid));
        kubectl.script(&READS.replace("{events}", &events));
    })
    .await;
}

impl Kubectl {
    /// The namespace controller's part.
    fn ends_the_namespace(&self, name: &str) {
        for resource in self
            .ok(&[
                "api-resources",
                "--namespaced",
                "--verbs=delete,list",
                "-o",
                "name",
            ])
            .lines()
        {
            self.ok(&[
                "-n",
                name,
                "delete",
                resource,
                "--all",
                "--ignore-not-found",
                "--wait=false",
            ]);
        }
        let namespace =
            format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        let file = self.file("namespace.json", &namespace);
        let path = format!("/api/v1/namespaces/{name}/finalize");
        self.ok(&["replace", "--raw", &path, "-f", &file]);
    }

    fn scales_each_kind(&self) {
        for (kind, name) in [
            ("ReplicaSet", "replicaset.apps"),
            ("StatefulSet", "statefulset.apps"),
        ] {
            let text = format!(
                "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: s}}\nspec:\n  selector: {{matchLabels: {{a: b}}}}\n  \
                 template:\n    metadata: {{labels: {{a: b}}}}\n    spec: {{containers: [{{name: c, image: i}}]}}\n"
            );
            let file = self.file("scaled.yaml", &text);
            self.ok(&["create", "-f", &file]);
            let said = self.quietly(&format!("scale {kind} s --replicas=3 --current-replicas=1"));
            assert_eq!(said, format!("{name}/s scaled\n"));
            let said = self.quietly(&format!("get {kind} s -o jsonpath='{{.spec.replicas}}'"));
            assert_eq!(said, "3");
            self.ok(&["delete", kind, "s"]);
        }
    }
}
