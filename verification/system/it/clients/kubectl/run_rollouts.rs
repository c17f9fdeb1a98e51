//! Rollouts of a deployment that the controllers of `--test-cluster` run. The test makes the pods ready.

use super::steps::Says::*;
use super::*;

#[tokio::test]
async fn deployments_roll_out_and_back_in_a_test_cluster() {
    let flags = ["--test-cluster=workloads"];
    over_each_store("rollouts in a test cluster", &flags, |kubectl| {
        kubectl.sees_rollouts();
    })
    .await;
}

impl Kubectl {
    fn sees_rollouts(&self) {
        self.steps(&[
            (
                "create deployment web --image=nginx:1 --replicas=3",
                Has("created"),
            ),
            (
                "annotate deployment web kubernetes.io/change-cause=first",
                Has("annotated"),
            ),
        ]);
        self.waits_for_the_rollout();
        self.steps(&[
            (
                "set image deployment/web nginx=nginx:2",
                Has("image updated"),
            ),
            (
                "annotate deployment web kubernetes.io/change-cause=second --overwrite",
                Has("annotated"),
            ),
        ]);
        self.waits_for_the_rollout();
        let both =
            "deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         first\n2         second";
        let back =
            "deployment.apps/web \nREVISION  CHANGE-CAUSE\n2         second\n3         first";
        self.steps(&[
            ("rollout history deployment web", Exactly(both)),
            (
                "rollout history deployment web --revision=1",
                Has("nginx:1"),
            ),
            ("rollout undo deployment web", Has("rolled back")),
        ]);
        self.waits_for_the_rollout();
        self.steps(&[
            ("rollout history deployment web", Exactly(back)),
            (
                "get pods -o jsonpath='{.items[*].spec.containers[*].image}'",
                Exactly("nginx:1 nginx:1 nginx:1"),
            ),
            ("rollout pause deployment web", Has("paused")),
            ("rollout resume deployment web", Has("resumed")),
            ("rollout restart deployment web", Has("restarted")),
        ]);
        self.waits_for_the_rollout();
        self.steps(&[
            (
                "describe deployment web",
                Has("3 desired | 3 updated | 3 total | 3 available | 0 unavailable"),
            ),
            ("delete deployment web --cascade=foreground", Has("deleted")),
            ("get replicasets,pods -o name", Exactly("")),
        ]);
    }

    /// Makes pods ready until `kubectl rollout status`, which has a time limit of its own, says that all are.
    fn waits_for_the_rollout(&self) {
        let status = ["rollout", "status", "deployment/web", PATIENT];
        let mut watching = self
            .command(&status)
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl");
        while watching.try_wait().expect("kubectl").is_none() {
            self.makes_pods_ready();
        }
        let watched = watching.wait_with_output().expect("kubectl");
        let said = String::from_utf8_lossy(&watched.stdout);
        assert!(
            said.ends_with("deployment \"web\" successfully rolled out\n"),
            "{said}"
        );
    }

    fn makes_pods_ready(&self) {
        let waiting = [
            "get",
            "pods",
            "--field-selector=status.phase=Pending",
            "-o",
            "name",
        ];
        let ready =
            r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
        for pod in self.ok(&waiting).lines() {
            // It may be gone by now.
            let patch = [
                "patch",
                pod,
                "--subresource=status",
                "--type=merge",
                "-p",
                ready,
            ];
            run(&mut self.command(&patch));
        }
    }
}
