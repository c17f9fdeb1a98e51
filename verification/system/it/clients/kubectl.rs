//! Stock kubectl, in the versions at hand, against both backends and at a relay.

mod applies;
mod defined;
mod deletion;
mod manifests;
mod nodes;
mod relayed;
mod rollouts;
mod run_rollouts;
mod steps;
mod tables;
mod tokens;
mod verbs;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringwatch_testing::eventually::DEADLINE;

use crate::support::etcd::Etcd;
use crate::support::server::Server;
use crate::support::tools::{self, run, skipped};

/// The minor versions of Kubernetes whose kubectl is tried.
const MINORS: &[u32] = &[29, 33];

#[tokio::test]
async fn kubectl_works_on_the_embedded_store() {
    let (server, _) = Server::ready(&[]).await;
    for kubectl in kubectls("kubectl on the embedded store", &server) {
        kubectl.everything();
    }
}

#[tokio::test]
async fn kubectl_works_on_etcd_and_etcdctl_sees_the_same() {
    let Some(etcd) = Etcd::start("kubectl on etcd") else {
        return;
    };
    let (server, _) = Server::ready(&["--etcd-servers", &etcd.endpoint()]).await;
    for kubectl in kubectls("kubectl on etcd", &server) {
        kubectl.everything();
        kubectl.ok(&["create", "configmap", "seen", "--from-literal=by=etcdctl"]);
        let stored = etcd.etcdctl(&["get", "--prefix", "/registry/configmaps/default/seen"]);
        assert!(
            stored.contains("/registry/configmaps/default/seen"),
            "{stored}"
        );
        assert!(stored.contains("\nk8s\0"), "as protobuf: {stored}");
        assert!(stored.contains("etcdctl"), "{stored}");
        kubectl.ok(&["delete", "configmap", "seen"]);
        let stored = etcd.etcdctl(&["get", "--prefix", "/registry/configmaps/default/seen"]);
        assert_eq!(stored.trim(), "", "deleted, and gone from etcd");
    }
}

/// Walks through something over each kind of store, both at a time, and with every kubectl. Where there are several of
/// these, each store has one of its own: what a kubectl sends does not depend on the store, and `everything` is tried
/// over both with all.
async fn over_each_store(case: &str, flags: &[&str], walk: impl Fn(&Kubectl) + Sync) {
    let etcd = Etcd::start(&format!("{case} over etcd"));
    let mut servers = vec![Server::start(flags)];
    if let Some(etcd) = &etcd {
        let endpoint = etcd.endpoint();
        servers.push(Server::start(
            &[&["--etcd-servers", &endpoint], flags].concat(),
        ));
    }
    for server in &mut servers {
        server.client().await;
    }
    std::thread::scope(|scope| {
        for (number, server) in servers.iter().enumerate() {
            let kubectls = kubectls(case, server);
            let turns = if kubectls.len() < servers.len() {
                1
            } else {
                servers.len()
            };
            let own = kubectls.into_iter().skip(number % turns).step_by(turns);
            scope.spawn(|| {
                for kubectl in own {
                    fs::create_dir_all(&kubectl.folder).expect("a folder");
                    walk(&kubectl);
                }
            });
        }
    });
}

fn kubectls(case: &str, server: &Server) -> Vec<Kubectl> {
    let mut found = Vec::new();
    for minor in MINORS {
        match tools::kubectl(*minor) {
            None => skipped(case, &format!("no kubectl 1.{minor}")),
            Some(program) => found.push(Kubectl {
                program,
                kubeconfig: server.kubeconfig(),
                folder: server.folder().join(format!("kubectl-{minor}")),
            }),
        }
    }
    found
}

/// The time limit of commands that wait: `DEADLINE`.
const PATIENT: &str = "--timeout=120s";

/// A definition with a schema.
const WIDGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, description: How large it is., nullable: true}
              parts: {type: array, items: {type: object, properties: {count: {type: integer}}}}
"#;

/// A kubectl with the admin's kubeconfig and a cache of its own.
struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
}

impl Kubectl {
    fn everything(&self) {
        fs::create_dir_all(&self.folder).expect("a folder");
        self.discovers();
        self.creates_and_reads();
        self.changes();
        self.watches_and_waits();
        self.pages_and_dry_runs();
        self.scales();
        self.explains();
        self.says_what_is_wrong();
    }

    fn discovers(&self) {
        let resources = self.ok(&["api-resources"]);
        for line in [
            "configmaps",
            "deployments",
            "horizontalpodautoscalers",
            "leases",
        ] {
            assert!(resources.contains(line), "{resources}");
        }
        assert!(self.ok(&["api-versions"]).contains("apps/v1"));
        assert!(self.ok(&["version"]).contains("Server Version"));
        let namespaces = self.ok(&["get", "namespaces", "-o", "name"]);
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            assert!(
                namespaces.contains(&format!("namespace/{name}\n")),
                "{namespaces}"
            );
        }
    }

    fn creates_and_reads(&self) {
        let manifest = self.file(
            "app.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  colour: blue\n",
        );
        self.ok(&["create", "-f", &manifest]);
        assert!(self.ok(&["get", "configmap", "app"]).contains("app"));
        let yaml = self.ok(&["get", "configmap", "app", "-o", "yaml"]);
        assert!(
            yaml.contains("colour: blue") && yaml.contains("resourceVersion:"),
            "{yaml}"
        );
        let described = self.ok(&["describe", "configmap", "app"]);
        assert!(
            described.contains("colour") && described.contains("blue"),
            "{described}"
        );
    }

    fn changes(&self) {
        let colour = ["get", "configmap", "app", "-o", "jsonpath={.data.colour}"];
        self.ok(&[
            "patch",
            "cm",
            "app",
            "--type=merge",
            "-p",
            r#"{"data":{"colour":"red"}}"#,
        ]);
        assert_eq!(self.ok(&colour), "red");
        let patch = r#"[{"op":"replace","path":"/data/colour","value":"green"}]"#;
        self.ok(&["patch", "configmap", "app", "--type=json", "-p", patch]);
        assert_eq!(self.ok(&colour), "green");
        self.ok(&["label", "configmap", "app", "tier=front"]);
        self.ok(&["annotate", "configmap", "app", "owner=me"]);
        let found = self.ok(&["get", "configmaps", "-l", "tier=front", "-o", "name"]);
        assert_eq!(found, "configmap/app\n");
        let manifest = self.file(
            "app.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\ndata:\n  colour: white\n",
        );
        self.ok(&["replace", "-f", &manifest]);
        assert_eq!(self.ok(&colour), "white");
        let applied = self.file(
            "applied.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  a: b\n",
        );
        self.ok(&["apply", "--server-side", "-f", &applied]);
        self.ok(&["delete", "-f", &applied]);
    }

    fn watches_and_waits(&self) {
        let mut watching = self
            .command(&[
                "get",
                "configmap",
                "app",
                "-w",
                "-o",
                "jsonpath={.data.step}{\"\\n\"}",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubectl");
        let lines = BufReader::new(watching.stdout.take().expect("its output"));
        let mut lines = lines.lines().map(|line| line.expect("a line"));
        assert_eq!(
            lines.next().as_deref(),
            Some(""),
            "the object before the changes"
        );
        for step in ["1", "2", "3"] {
            let patch = format!(r#"{{"data":{{"step":"{step}"}}}}"#);
            self.ok(&["patch", "configmap", "app", "--type=merge", "-p", &patch]);
            assert_eq!(lines.next().as_deref(), Some(step));
        }
        watching.kill().expect("a running kubectl");
        watching.wait().expect("a killed kubectl");

        let mut waiting = self
            .command(&["wait", "--for=delete", "configmap/app", PATIENT])
            .spawn()
            .expect("kubectl");
        self.ok(&["delete", "configmap", "app"]);
        assert!(
            waiting.wait().expect("kubectl").success(),
            "kubectl wait saw the deletion"
        );
        self.ok(&[
            "wait",
            "--for=jsonpath={.status.phase}=Active",
            "namespace/default",
        ]);
    }

    fn pages_and_dry_runs(&self) {
        for name in ["p1", "p2", "p3", "p4", "p5"] {
            self.ok(&["create", "configmap", name, "--from-literal=a=b"]);
            self.ok(&["label", "configmap", name, "paged=yes"]);
        }
        let names = self.ok(&[
            "get",
            "cm",
            "-l",
            "paged=yes",
            "--chunk-size=2",
            "-o",
            "name",
        ]);
        assert_eq!(names.lines().count(), 5, "{names}");
        let dry = self.ok(&[
            "create",
            "configmap",
            "dry",
            "--from-literal=a=b",
            "--dry-run=server",
        ]);
        assert!(dry.contains("server dry run"), "{dry}");
        assert!(
            self.fails(&["get", "configmap", "dry"])
                .contains("NotFound")
        );
        self.ok(&["delete", "configmaps", "-l", "paged=yes"]);
        assert_eq!(
            self.ok(&["get", "configmaps", "-l", "paged=yes", "-o", "name"]),
            ""
        );
    }

    fn scales(&self) {
        self.ok(&["create", "deployment", "web", "--image=nginx"]);
        self.ok(&["scale", "deployment", "web", "--replicas=3"]);
        let replicas = [
            "get",
            "deployment",
            "web",
            "-o",
            "jsonpath={.spec.replicas}",
        ];
        assert_eq!(self.ok(&replicas), "3");
        assert!(
            self.ok(&["describe", "deployment", "web"])
                .contains("nginx")
        );
        self.ok(&["delete", "deployment", "web"]);
    }

    fn explains(&self) {
        let manifest = self.file("widgets.yaml", WIDGETS);
        self.ok(&["create", "-f", &manifest]);
        // A definition without conditions has `null` there, as in kube-apiserver, for which `kubectl wait` fails when
        // it is to wait for a condition. They come with the accepted names.
        let accepted = "--for=jsonpath={.status.acceptedNames.kind}=Widget";
        for wait in [accepted, "--for=condition=Established"] {
            self.ok(&["wait", wait, "crd/widgets.example.com", PATIENT]);
        }
        let v2 = "--output=plaintext-openapiv2";
        for (arguments, texts) in [
            (
                &["pods.spec.containers", "--recursive"][..],
                &["imagePullPolicy", "valueFrom"][..],
            ),
            (
                &["pods.spec.containers.ports.protocol"],
                &["Protocol for port", "SCTP"],
            ),
            (
                &["deployment", "--api-version=apps/v1"],
                &["enables declarative updates for Pods"],
            ),
            (
                &["deployment.spec.selector", v2],
                &["Label selector for pods"],
            ),
            (
                &["widgets.spec", "--recursive"],
                &["size", "parts", "<[]Object>", "count"],
            ),
            (&["widgets.spec.size"], &["How large it is."]),
            (&["widgets.spec", v2], &["How large it is."]),
            (
                &["widgets.metadata.labels"],
                &["Map of string keys and values"],
            ),
        ] {
            let output = self.ok_soon(&[&["explain"], arguments].concat());
            for text in texts {
                assert!(output.contains(text), "{arguments:?}: {output}");
            }
        }
        self.ok_soon(&["get", "widgets"]);
        let mistyped = self.file(
            "mistyped.yaml",
            "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {sise: 3}\n",
        );
        for validate in ["--validate=strict", "--validate=true"] {
            for verb in ["create", "apply"] {
                let wrong = self.fails(&[verb, validate, "-f", &mistyped]);
                assert!(wrong.contains(r#"unknown field "spec.sise""#), "{wrong}");
            }
        }
        self.ok(&["delete", "-f", &manifest]);
    }

    fn says_what_is_wrong(&self) {
        assert!(
            self.fails(&["get", "configmap", "none"])
                .contains("(NotFound)")
        );
        let wrong = self.fails(&["create", "configmap", "Wrong_Name"]);
        assert!(wrong.contains("lowercase RFC 1123 subdomain"), "{wrong}");
        let nowhere = self.fails(&["-n", "nowhere", "create", "configmap", "a"]);
        assert!(
            nowhere.contains("namespaces \"nowhere\" not found"),
            "{nowhere}"
        );
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command
            .arg("--cache-dir")
            .arg(Path::new(&self.folder).join("cache"));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .env_remove("KUBECONFIG")
            // Thousands of them run, each too briefly for its garbage to matter.
            .env("GOGC", "400");
        command
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = run(&mut self.command(arguments));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{} {arguments:?}: {errors}",
            self.program.display()
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The same for what is served a moment after it is said to be. It holds up the thread, as every kubectl here does.
    fn ok_soon(&self, arguments: &[&str]) -> String {
        let deadline = Instant::now() + DEADLINE;
        while !run(&mut self.command(arguments)).status.success() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.ok(arguments)
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = run(&mut self.command(arguments));
        assert!(!output.status.success(), "{arguments:?} should fail");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}
