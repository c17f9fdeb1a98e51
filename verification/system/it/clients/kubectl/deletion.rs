//! Deleting, with dependents in every way, and waiting for it.

use super::steps::Says::*;
use super::*;

#[tokio::test]
async fn objects_are_deleted_in_every_way() {
    over_each_store("deleting", &[], |kubectl| {
        kubectl.says_what_becomes_of_dependents();
        kubectl.deletes_pods();
        kubectl.deletes_many();
        kubectl.waits();
    })
    .await;
}

impl Kubectl {
    fn says_what_becomes_of_dependents(&self) {
        for (cascade, finalizers) in [
            ("foreground", r#"["foregroundDeletion"]"#),
            ("orphan", r#"["orphan"]"#),
        ] {
            let delete = format!("delete deployment web --cascade={cascade} --wait=false");
            self.steps(&[
                (
                    "create deployment web --image=nginx",
                    Exactly("deployment.apps/web created"),
                ),
                (&delete, Has("deleted")),
                (
                    "get deployment web -o jsonpath='{.metadata.finalizers}'",
                    Exactly(finalizers),
                ),
                (
                    "label deployment web still=there",
                    Exactly("deployment.apps/web labeled"),
                ),
                (
                    "wait deployment web --for=delete --timeout=3s",
                    Fails("timed out waiting for the condition on deployments/web"),
                ),
                // The garbage collector's part.
                (
                    r#"patch deployment web --type=merge -p '{"metadata":{"finalizers":null}}'"#,
                    Exactly("deployment.apps/web patched"),
                ),
                (
                    "get deployment web",
                    Fails("deployments.apps \"web\" not found"),
                ),
            ]);
        }
        self.steps(&[
            (
                "create deployment web --image=nginx",
                Exactly("deployment.apps/web created"),
            ),
            ("delete deployment web --cascade=background", Has("deleted")),
            ("get deployment web", Fails("NotFound")),
            (
                "delete deployment web",
                Fails("deployments.apps \"web\" not found"),
            ),
            ("delete deployment web --ignore-not-found", Exactly("")),
        ]);
    }

    fn deletes_pods(&self) {
        let pod = self.file(
            "bound.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: bound}\nspec:\n  nodeName: far\n  terminationGracePeriodSeconds: 20\n  containers: [{name: c, image: i}]\n",
        );
        self.steps(&[
            (&format!("create -f {pod}"), Exactly("pod/bound created")),
            (
                "delete pod bound --dry-run=server",
                Has("deleted (server dry run)"),
            ),
            (
                "get pod bound -o jsonpath='{.metadata.deletionTimestamp}'",
                Exactly(""),
            ),
            // Nobody on the node confirms that it ended.
            ("delete pod bound --wait=false", Has("deleted")),
            (
                "get pod bound -o jsonpath='{.metadata.deletionGracePeriodSeconds}'",
                Exactly("20"),
            ),
            ("get pod bound", Has("Terminating")),
            ("delete pod bound --now --wait=false", Has("deleted")),
            (
                "get pod bound -o jsonpath='{.metadata.deletionGracePeriodSeconds}'",
                Exactly("1"),
            ),
            (
                "delete pod bound --grace-period=0 --force",
                Has("Immediate deletion does not wait for confirmation"),
            ),
            ("get pod bound", Fails("pods \"bound\" not found")),
            ("run loose --image=i", Exactly("pod/loose created")),
            ("delete pod loose", Has("\"loose\" deleted")),
        ]);
    }

    fn deletes_many(&self) {
        for name in ["a", "b", "c", "d"] {
            self.ok(&["create", "configmap", name]);
            let label = if name == "a" { "kept=yes" } else { "kept=no" };
            self.ok(&["label", "configmap", name, label]);
        }
        let names = "get configmaps -l kept -o name";
        self.steps(&[
            (
                "delete configmaps -l kept=no --dry-run=server",
                Has("\"d\" deleted (server dry run)"),
            ),
            (
                names,
                Exactly("configmap/a\nconfigmap/b\nconfigmap/c\nconfigmap/d"),
            ),
            ("delete configmap b c", Has("\"c\" deleted")),
            ("delete configmaps -l kept=no", Has("\"d\" deleted")),
            (names, Exactly("configmap/a")),
            (
                "create namespace emptied",
                Exactly("namespace/emptied created"),
            ),
            (
                "-n emptied create configmap x",
                Exactly("configmap/x created"),
            ),
            (
                "-n emptied create secret generic x",
                Exactly("secret/x created"),
            ),
            (
                "-n emptied delete configmaps,secrets --all",
                Has("secret \"x\" deleted"),
            ),
            (
                "-n emptied get configmaps,secrets",
                Has("No resources found"),
            ),
            ("delete configmap a", Has("\"a\" deleted")),
            ("delete namespace emptied --wait=false", Has("deleted")),
            ("get namespace emptied", Has("Terminating")),
            (
                "-n emptied create configmap late",
                Fails("because it is being terminated"),
            ),
        ]);
        // The namespace controller's part.
        let file = self.file(
            "finalize.json",
            r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"emptied"},"spec":{"finalizers":[]}}"#,
        );
        self.steps(&[
            (
                &format!("replace --raw /api/v1/namespaces/emptied/finalize -f {file}"),
                Has("Terminating"),
            ),
            ("get namespace emptied", Fails("NotFound")),
        ]);
    }

    fn waits(&self) {
        self.steps(&[
            (
                "create deployment waited --image=nginx",
                Exactly("deployment.apps/waited created"),
            ),
            (
                "wait deployment waited --for=condition=Available --timeout=3s",
                Fails("timed out waiting for the condition on deployments/waited"),
            ),
            (
                "wait deployment waited --for=jsonpath='{.spec.replicas}'=1",
                Exactly("deployment.apps/waited condition met"),
            ),
        ]);
        let waits = [
            "wait",
            "deployment/waited",
            "--for=condition=Available",
            PATIENT,
        ];
        let waiting = self
            .command(&waits)
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl");
        self.steps(&[(
            r#"patch deployment waited --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Available","status":"True"}]}}'"#,
            Exactly("deployment.apps/waited patched"),
        )]);
        let waited = waiting.wait_with_output().expect("kubectl");
        assert!(waited.status.success(), "kubectl wait saw the condition");
        self.steps(&[
            (
                "wait deployment waited --for=condition=Available",
                Exactly("deployment.apps/waited condition met"),
            ),
            ("delete deployment waited", Has("deleted")),
            ("wait deployment waited --for=delete", Has("")),
        ]);
    }
}
