//! The folder of `envtest-assets`, used as envtest uses it: the same flags, probes and signals, certificates made by
//! the suite, users by client certificates. Go's own suites are run by `verification/system/envtest`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
use ringwatch_testing::etcd::Etcd;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use ringwatch_testing::reserved_port::ReservedPort;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::certificates::Authority;
use crate::support::named;

/// A suite with its assets, its temporary folders and its certificates.
struct Suite {
    folder: TempDir,
    clients: Authority,
    etcd: ReservedPort,
    server: ReservedPort,
}

/// A started program, which is killed when it is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    /// Ends the program as envtest does.
    async fn terminate(mut self) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.expect("kill").success());
        let ended = eventually(DEADLINE, "it ends", async || {
            self.0.try_wait().expect("a child")
        });
        let status = ended.await;
        assert!(status.success(), "it ended with {status}");
    }
}

impl Suite {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let suite = Self {
            folder,
            clients: Authority::new("clients"),
            etcd: ReservedPort::new(),
            server: ReservedPort::new(),
        };
        let mut lay_out = Command::new(env!("CARGO_BIN_EXE_ringwatch"));
        let laid_out = lay_out.arg("envtest-assets").arg(suite.path("assets"));
        let said = laid_out.env("PATH", "").output().unwrap();
        assert!(said.status.success());
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.contains("no kubectl is on PATH"), "{said}");
        for name in ["certificates", "home", "temporary"] {
            fs::create_dir(suite.path(name)).unwrap();
        }
        let serving = Authority::new("serving");
        let pair = serving.server();
        suite.write("apiserver.crt", &pair.certificate);
        suite.write("apiserver.key", &pair.key);
        let key = KeyPair::generate().unwrap();
        let names = vec!["accounts".to_owned()];
        let certificate = CertificateParams::new(names).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        suite.write("sa-signer.crt", &certificate.pem());
        suite.write("sa-signer.key", &key.serialize_pem());
        suite.write("client-cert-auth-ca.crt", &suite.clients.pem);
        suite
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn certificate(&self, name: &str) -> PathBuf {
        self.path("certificates").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.certificate(name), text).unwrap();
    }

    /// Returns the command of one of the programs, which has nothing but what the suite gives it.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.path("assets").join(program));
        command.current_dir(self.path("home"));
        command.env_clear().env("TMPDIR", self.path("temporary"));
        command.stdout(Stdio::null());
        command
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd.number())
    }

    async fn start_etcd(&self) -> Program {
        let mut help = self.command("etcd");
        let help = help.arg("--help").stdout(Stdio::piped()).output().unwrap();
        assert!(has_flag(&help.stdout, "unsafe-no-fsync"));
        let url = self.etcd_url();
        let mut command = self.command("etcd");
        command.args([
            format!("--advertise-client-urls={url}"),
            format!("--data-dir={}", self.path("etcd").display()),
            format!("--listen-client-urls={url}"),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            "--unsafe-no-fsync=true".to_owned(),
        ]);
        let started = Program(command.spawn().unwrap());
        let healthy = async || get(self.etcd.number(), "/health").await;
        let answer = eventually(DEADLINE, "etcd is healthy", healthy).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains(r#""health":"true""#), "{answer}");
        started
    }

    /// Returns the command of kube-apiserver with envtest's flags.
    fn server_command(&self, etcd: &str, port: u16) -> Command {
        let mut command = self.command("kube-apiserver");
        let file =
            |flag: &str, name: &str| format!("--{flag}={}", self.certificate(name).display());
        command.args([
            "--allow-privileged=true".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            file("cert-dir", ""),
            file("client-ca-file", "client-cert-auth-ca.crt"),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            format!("--etcd-servers={etcd}"),
            format!("--secure-port={port}"),
            format!("--service-account-issuer=https://127.0.0.1:{port}/"),
            file("service-account-key-file", "sa-signer.crt"),
            file("service-account-signing-key-file", "sa-signer.key"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        ]);
        command
    }

    async fn start_server(&self, etcd: &str) -> Program {
        let port = self.server.number();
        let started = Program(self.server_command(etcd, port).spawn().unwrap());
        self.healthy().await;
        started
    }

    /// Waits for the server.
    async fn healthy(&self) {
        let port = self.server.number();
        let mut config = Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
        config.accept_invalid_certs = true;
        let anybody = Client::try_from(config).unwrap();
        let healthy = async || {
            let request = http::Request::get("/healthz").body(Vec::new()).unwrap();
            anybody.request_text(request).await
        };
        eventually(DEADLINE, "the server is healthy", healthy).await;
    }

    /// Returns a client with a certificate that the suite's authority signs.
    async fn client(&self, user: &str, group: &str) -> Client {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name.push(DnType::CommonName, user);
        let name = &mut params.distinguished_name;
        name.push(DnType::OrganizationName, group);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.clients.issuer).unwrap();
        let kubeconfig = self.path("kubeconfig");
        let [crt, pem] = ["user.crt", "user.key"].map(|name| self.path(name));
        fs::write(&crt, certificate.pem()).unwrap();
        fs::write(&pem, key.serialize_pem()).unwrap();
        let document = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "a", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.server.number()),
                "certificate-authority": self.certificate("apiserver.crt"),
            }}],
            "users": [{"name": "a", "user": {"client-certificate": crt, "client-key": pem}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        });
        fs::write(&kubeconfig, document.to_string()).unwrap();
        let kubeconfig = Kubeconfig::read_from(&kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        Client::try_from(config.unwrap()).unwrap()
    }

    /// Removes what envtest removes, and returns what is left of the programs' files.
    fn removed(self) -> Vec<PathBuf> {
        fs::remove_dir_all(self.path("etcd")).unwrap();
        let kept = ["home", "temporary"].map(|name| self.path(name));
        let files = |folder: &PathBuf| -> Vec<PathBuf> {
            let all = fs::read_dir(folder).unwrap();
            all.map(|it| it.unwrap().path()).collect()
        };
        kept.iter().flat_map(files).collect()
    }
}

/// Returns true if a text of help has a flag, as envtest looks for it.
fn has_flag(help: &[u8], flag: &str) -> bool {
    let help = String::from_utf8_lossy(help);
    let flag = format!("--{flag}");
    let mut lines = help.lines().map(str::trim_start);
    lines.any(|line| {
        let rest = line.strip_prefix(&flag);
        rest.is_some_and(|it| !it.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
    })
}

async fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn definition() -> CustomResourceDefinition {
    let definition = json!({
        "metadata": {"name": "mutexes.example.test"},
        "spec": {
            "group": "example.test",
            "scope": "Namespaced",
            "names": {"kind": "Mutex", "plural": "mutexes"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"holder": {"type": "string"}}}},
            }}}],
        },
    });
    serde_json::from_value(definition).unwrap()
}

fn mutexes(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "example.test".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.test/v1".to_owned(),
        kind: "Mutex".to_owned(),
        plural: "mutexes".to_owned(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

fn mutex() -> DynamicObject {
    let object = json!({
        "apiVersion": "example.test/v1",
        "kind": "Mutex",
        "metadata": {"name": "a"},
        "spec": {"holder": "b"},
    });
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn a_suite_finds_its_objects_after_a_restart_and_leaves_no_file() {
    let suite = Suite::new();
    let help = suite
        .command("kube-apiserver")
        .arg("--help")
        .stdout(Stdio::piped())
        .output();
    let help = help.unwrap();
    assert!(help.status.success() && has_flag(&help.stdout, "etcd-servers"));
    assert!(
        !has_flag(&help.stdout, "insecure-port"),
        "which envtest would give"
    );
    let etcd = suite.start_etcd().await;
    let server = suite.start_server(&suite.etcd_url()).await;
    let client = suite.client("admin", "system:masters").await;
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces
        .get("default")
        .await
        .expect("the namespace that envtest waits for");
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let params = PostParams::default();
    definitions
        .create(&params, &definition())
        .await
        .expect("a definition");
    let create = async || mutexes(&client).create(&params, &mutex()).await;
    eventually(DEADLINE, "the custom resource is served", create).await;
    let stranger = suite.client("stranger", "nobody").await;
    let refused = mutexes(&stranger).get("a").await.expect_err("RBAC");
    assert!(
        refused.to_string().contains("cannot get resource"),
        "{refused}"
    );
    server.terminate().await;
    let server = suite.start_server(&suite.etcd_url()).await;
    let found = async || mutexes(&client).get("a").await;
    let found = eventually(DEADLINE, "the object is there", found).await;
    assert_eq!(found.data["spec"]["holder"], "b");
    // Java's kube-api-test kills its servers.
    drop(server);
    let server = suite.start_server(&suite.etcd_url()).await;
    let found = async || mutexes(&client).get("a").await;
    eventually(DEADLINE, "the object is there", found).await;
    server.terminate().await;
    etcd.terminate().await;
    let here = fs::read_dir(suite.path("certificates")).unwrap().count();
    assert_eq!(here, 5, "the suite's own files");
    assert_eq!(suite.removed(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_second_server_on_the_same_stand_in_says_why_it_ends() {
    let suite = Suite::new();
    let etcd = suite.start_etcd().await;
    // As Java's kube-api-test names it.
    let url = format!("http://0.0.0.0:{}", suite.etcd.number());
    let server = suite.start_server(&url).await;
    let fails = |command: Command, why: &str| ends(command, 1, why);
    fails(suite.server_command(&url, 0), "in use by another process");
    let both = format!("{url},http://127.0.0.1:1");
    fails(suite.server_command(&both, 0), "leave the others out");
    let mut elsewhere = suite.server_command(&url, 0);
    elsewhere.arg("--data-dir=elsewhere");
    fails(elsewhere, "leave --data-dir out");
    let mut overridden = suite.server_command(&url, 0);
    overridden.arg("--etcd-servers-overrides=/events#http://127.0.0.1:1");
    fails(overridden, "leave --etcd-servers-overrides out");
    let client = suite.client("admin", "system:masters").await;
    let maps = Api::<ConfigMap>::namespaced(client, "default");
    let object = ConfigMap {
        metadata: named("a"),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &object)
        .await
        .expect("the first still serves");
    server.terminate().await;
    etcd.terminate().await;
}

/// Runs a program, which must end with a code and a line about the reason.
fn ends(mut command: Command, code: i32, why: &str) {
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains(why) && error.lines().count() == 1, "{error}");
}

#[test]
fn a_server_without_etcd_leaves_no_file() {
    let suite = Suite::new();
    let command = suite.command("kube-apiserver");
    ends(command, 2, "--etcd-servers must be specified");
    assert!(is_empty(&suite.path("home")));
}

#[tokio::test]
async fn a_server_says_that_it_waits_for_etcd() {
    let suite = Suite::new();
    let mut command = suite.server_command(&suite.etcd_url(), suite.server.number());
    let log = suite.path("log");
    let file = fs::File::create(&log).unwrap();
    let server = Program(command.stderr(file).spawn().unwrap());
    let told = async || {
        let said = fs::read_to_string(&log).unwrap();
        said.contains("waiting for etcd at")
    };
    eventually(DEADLINE, "it says what it waits for", told).await;
    let etcd = suite.start_etcd().await;
    suite.healthy().await;
    server.terminate().await;
    etcd.terminate().await;
}

#[tokio::test]
async fn a_real_etcd_is_used_and_generated_files_go_to_the_folder_of_certificates() {
    let Some(etcd) = Etcd::start("envtest: etcd") else {
        return;
    };
    let suite = Suite::new();
    // A member that is down keeps nobody from the others.
    let servers = format!("{},{}", suite.etcd_url(), etcd.endpoint());
    let server = suite.start_server(&servers).await;
    let client = suite.client("admin", "system:masters").await;
    Api::<Namespace>::all(client)
        .get("default")
        .await
        .expect("served");
    let keys = etcd.etcdctl(&["get", "/registry/namespaces/default", "--keys-only"]);
    assert!(keys.contains("/registry/namespaces/default"), "{keys}");
    server.terminate().await;
    assert!(is_empty(&suite.path("home")));
    assert!(suite.certificate("pki/ca.crt").exists());
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}
