//! Applying changes: on the client and on the server, against other managers, and by an editor.

use super::steps::Says::*;
use super::*;

#[tokio::test]
async fn changes_are_applied() {
    over_each_store("applying", &[], |kubectl| {
        kubectl.applies_on_the_client();
        kubectl.applies_on_the_server();
        kubectl.takes_over_what_the_client_applied();
        kubectl.edits();
        kubectl.replaces();
    })
    .await;
}

/// A deployment with these lines in its first container's place.
fn deployment(replicas: &str, container: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n{replicas}  selector:\n    \
         matchLabels: {{app: web}}\n  template:\n    metadata:\n      labels: {{app: web}}\n    spec:\n      \
         containers:\n      - name: web\n{container}"
    )
}

impl Kubectl {
    fn applies_on_the_client(&self) {
        let first = "        image: nginx:1\n        args: [a]\n        env:\n        - {name: A, value: '1'}\n        - {name: B, value: '1'}\n";
        self.file("web.yaml", &deployment("  replicas: 2\n", first));
        let file = self.folder.join("web.yaml").display().to_string();
        let apply = format!("apply -f {file}");
        let deployed =
            |path: &str| self.quietly(&format!("get deployment web -o jsonpath='{path}'"));
        self.steps(&[
            (&apply, Exactly("deployment.apps/web created")),
            (&apply, Exactly("deployment.apps/web unchanged")),
            (
                "scale deployment web --replicas=5",
                Exactly("deployment.apps/web scaled"),
            ),
            (
                "set serviceaccount deployment web other",
                Exactly("deployment.apps/web serviceaccount updated"),
            ),
        ]);
        // What others added stays; what the manifest no longer has goes.
        let second = "        image: nginx:2\n        env:\n        - {name: A, value: '2'}\n";
        self.file("web.yaml", &deployment("", second));
        let output = run(&mut self.command(&["diff", "-f", &file]));
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(1),
            "there is a difference: {shown}"
        );
        for line in [
            "-  generation: 3",
            "+  generation: 4",
            "-        - name: B",
            "-        image: nginx:1",
            "+        image: nginx:2",
            "-  replicas: 5",
            "+  replicas: 1",
        ] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
        self.steps(&[
            (&apply, Exactly("deployment.apps/web configured")),
            (&apply, Exactly("deployment.apps/web unchanged")),
        ]);
        assert_eq!(deployed("{.spec.replicas} {.metadata.generation}"), "1 4");
        let container = "{.spec.template.spec.containers[0]";
        assert_eq!(deployed(&format!("{container}.args}}")), "");
        assert_eq!(deployed(&format!("{container}.env[*].name}}")), "A");
        let account = "{.spec.template.spec.serviceAccountName}";
        assert_eq!(deployed(account), "other");
        self.steps(&[
            (
                &format!("{apply} --dry-run=server"),
                Exactly("deployment.apps/web unchanged (server dry run)"),
            ),
            (&format!("delete -f {file}"), Has("deleted")),
        ]);
    }

    fn applies_on_the_server(&self) {
        let file = |name: &str, data: &str| {
            let text = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shared\ndata:\n{data}"
            );
            self.file(name, &text)
        };
        let one = file("one.yaml", "  a: '1'\n  b: '1'\n");
        let two = file("two.yaml", "  b: '2'\n  c: '2'\n");
        let apply = |manager: &str, file: &str| {
            format!("apply --server-side --field-manager={manager} -f {file}")
        };
        let data = "get configmap shared -o jsonpath='{.data}'";
        let applied = Exactly("configmap/shared serverside-applied");
        self.steps(&[
            (&apply("one", &one), applied),
            (
                &apply("two", &two),
                Fails("Apply failed with 1 conflict: conflict with \"one\": .data.b"),
            ),
            (data, Exactly(r#"{"a":"1","b":"1"}"#)),
            (
                &format!("{} --force-conflicts", apply("two", &two)),
                applied,
            ),
            (data, Exactly(r#"{"a":"1","b":"2","c":"2"}"#)),
        ]);
        // What only one manager had goes with its mention; what another has stays.
        file("one.yaml", "  z: '1'\n");
        self.steps(&[
            (&apply("one", &one), applied),
            (data, Exactly(r#"{"b":"2","c":"2","z":"1"}"#)),
        ]);
        // Entries are in the order of their times, which count whole seconds.
        let managers = self.quietly(
            "get configmap shared --show-managed-fields -o jsonpath='{.metadata.managedFields[*].manager}'",
        );
        let mut managers: Vec<_> = managers.split(' ').collect();
        managers.sort_unstable();
        assert_eq!(managers, ["one", "two"]);
        // A template that renders an empty block takes nothing away.
        let empty = file("empty.yaml", "");
        self.steps(&[
            (&apply("three", &empty), applied),
            (data, Exactly(r#"{"b":"2","c":"2","z":"1"}"#)),
        ]);
        self.steps(&[("delete configmap shared", Has("deleted"))]);
    }

    /// The fields of client-side apply become those of server-side apply.
    fn takes_over_what_the_client_applied(&self) {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: moved\ndata:\n  a: '1'\n  b: '1'\n";
        let file = self.file("moved.yaml", text);
        self.ok(&["apply", "-f", &file]);
        self.ok(&["apply", "--server-side", "-f", &file]);
        self.file("moved.yaml", &text.replace("  b: '1'\n", ""));
        self.ok(&["apply", "--server-side", "-f", &file]);
        self.steps(&[
            (
                "get configmap moved -o jsonpath='{.data}'",
                Exactly(r#"{"a":"1"}"#),
            ),
            ("delete configmap moved", Has("deleted")),
        ]);
    }

    fn edits(&self) {
        self.ok(&["create", "deployment", "edited", "--image=nginx:1"]);
        let edit = |script: &str| {
            let mut command = self.command(&["edit", "deployment", "edited"]);
            let output = run(command.env("KUBE_EDITOR", format!("sed -i -e {script}")));
            let out = String::from_utf8_lossy(&output.stdout).into_owned();
            (
                output.status.success(),
                out + &String::from_utf8_lossy(&output.stderr),
            )
        };
        let (succeeds, said) = edit("s/nginx:1/nginx:2/");
        assert!(
            succeeds && said == "deployment.apps/edited edited\n",
            "{said}"
        );
        let (succeeds, said) = edit("s/no-such-text/x/");
        assert!(
            succeeds && said == "Edit cancelled, no changes made.\n",
            "{said}"
        );
        let (succeeds, said) = edit("s/replicas:.1/replicas:\\ -1/");
        assert!(
            !succeeds && said.contains("deployments.apps \"edited\" is invalid"),
            "{said}"
        );
        self.steps(&[
            (
                "get deployment edited -o jsonpath='{.spec.template.spec.containers[0].image} {.spec.replicas}'",
                Exactly("nginx:2 1"),
            ),
            ("delete deployment edited", Has("deleted")),
        ]);
    }

    fn replaces(&self) {
        self.ok(&[
            "create",
            "service",
            "clusterip",
            "replaced",
            "--tcp=80:8080",
        ]);
        let mut service = self.json("get service replaced");
        service["spec"]["ports"][0]["targetPort"] = 9090.into();
        let file = self.file("replaced.json", &service.to_string());
        let replace = format!("replace -f {file}");
        self.steps(&[
            (&replace, Exactly("service/replaced replaced")),
            (&replace, Fails("the object has been modified")),
        ]);
        // An address of the part that is handed out only to who asks for it, so not the one it has.
        service["spec"]["clusterIP"] = "10.0.0.9".into();
        service["spec"]["clusterIPs"] = vec!["10.0.0.9"].into();
        service["metadata"]["resourceVersion"].take();
        self.file("replaced.json", &service.to_string());
        self.steps(&[
            (&replace, Fails("spec.clusterIPs[0]: Invalid value")),
            (
                &format!("{replace} --force"),
                Has("service/replaced replaced"),
            ),
            ("delete service replaced", Has("deleted")),
        ]);
    }
}
