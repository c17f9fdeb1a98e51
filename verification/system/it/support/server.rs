//! A ringwatch server of its own, as a process, in a temporary folder: one with a store, or a relay.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::config::{KubeConfigOptions, Kubeconfig};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use ringwatch_testing::reserved_port::ReservedPort;
use tempfile::TempDir;

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    port: ReservedPort,
    arguments: Vec<String>,
    /// The command that runs the server's, with its arguments; empty for none.
    under: Vec<String>,
    /// The kubeconfig of the upstream; `None` for a server that is no relay.
    upstream: Option<PathBuf>,
}

impl Server {
    /// Starts a server with these flags beside its own folder and port.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_under(&[], arguments)
    }

    /// The same by means of another command, which becomes the server (as `env` does).
    pub(crate) fn start_under(under: &[&str], arguments: &[&str]) -> Self {
        Self::start_any(under, None, arguments)
    }

    /// Starts a server with these flags and returns it, once it is ready, with a client as the admin.
    pub(crate) async fn ready(arguments: &[&str]) -> (Self, kube::Client) {
        let mut server = Self::start(arguments);
        let client = server.client().await;
        (server, client)
    }

    /// Starts a relay in front of the server of a kubeconfig.
    pub(crate) fn relay(upstream: &Path, arguments: &[&str]) -> Self {
        Self::start_any(&[], Some(upstream.to_owned()), arguments)
    }

    fn start_any(under: &[&str], upstream: Option<PathBuf>, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = ReservedPort::new();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let under: Vec<String> = under.iter().map(ToString::to_string).collect();
        let words = words(&under, upstream.as_deref());
        let child = spawn(&folder, port.number(), &words, &arguments);
        Self {
            child,
            folder,
            port,
            arguments,
            under,
            upstream,
        }
    }

    /// Starts the server again on the same folder and port. It must have ended.
    pub(crate) fn start_again(&mut self) {
        assert!(!self.is_running(), "the server still runs");
        let words = words(&self.under, self.upstream.as_deref());
        self.child = spawn(&self.folder, self.port.number(), &words, &self.arguments);
    }

    /// The same with other flags from now on.
    pub(crate) fn start_again_with(&mut self, arguments: &[String]) {
        self.arguments = arguments.to_vec();
        self.start_again();
    }

    /// Stops the server, starts it again and returns a client as the admin, once it is ready.
    pub(crate) async fn restart(&mut self) -> kube::Client {
        self.stop().await;
        self.start_again();
        self.client().await
    }

    /// From the next start on the server runs by itself.
    pub(crate) fn no_longer_under(&mut self) {
        self.under.clear();
    }

    /// Ends the server as an operator would, and waits until it has drained.
    pub(crate) async fn stop(&mut self) {
        signal(&self.child, "TERM");
        self.ended().await;
    }

    /// Has the server read the files that it follows.
    pub(crate) fn hang_up(&self) {
        signal(&self.child, "HUP");
    }

    /// Waits until the server has logged something.
    pub(crate) async fn logged(&self, words: &str) {
        let what = format!("the server logs {words:?}");
        eventually(DEADLINE, what, async || self.log().contains(words)).await;
    }

    /// Waits until a server that has been told to end has drained.
    pub(crate) async fn ended(&mut self) {
        let ended = eventually(DEADLINE, "the server ends", async || {
            self.child.try_wait().expect("a child")
        });
        let status = ended.await;
        assert!(status.success(), "it ended with {status}:\n{}", self.log());
    }

    /// Ends the server without a warning.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a running server");
        self.child.wait().expect("a killed server");
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// The server's process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the port on which the server listens.
    pub(crate) fn port(&self) -> u16 {
        self.port.number()
    }

    /// The admin's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("data/kubeconfig")
    }

    /// The folder for whatever the test needs beside the server.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the server's log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// A client as the admin, once the server is ready.
    pub(crate) async fn client(&mut self) -> kube::Client {
        self.client_once("/readyz").await
    }

    /// A client as the admin, once this path of health says ok.
    pub(crate) async fn client_once(&mut self, path: &str) -> kube::Client {
        let what = format!("the server says ok at {path}");
        let client = eventually(DEADLINE, what, async || {
            assert!(self.is_running(), "the server ended:\n{}", self.log());
            self.try_client(path).await
        });
        client.await
    }

    /// Reads the admin's client configuration. The server must be ready.
    pub(crate) async fn config(&self) -> kube::Config {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
        config.await.expect("a configuration")
    }

    /// A client as the user of a bearer token. The server must be ready.
    pub(crate) async fn client_with_token(&self, token: &str) -> kube::Client {
        let mut config = self.config().await;
        config.auth_info = kube::config::AuthInfo {
            token: Some(token.to_owned().into()),
            ..Default::default()
        };
        // What is refused is not asked again.
        config.default_retry = false;
        kube::Client::try_from(config).expect("a client")
    }

    /// A client of which the server knows nothing. The server must be ready.
    pub(crate) async fn client_without_credentials(&self) -> kube::Client {
        let mut config = self.config().await;
        config.auth_info = kube::config::AuthInfo::default();
        config.default_retry = false;
        kube::Client::try_from(config).expect("a client")
    }

    async fn try_client(&self, path: &str) -> Option<kube::Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).ok()?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .ok()?;
        let client = kube::Client::try_from(config).ok()?;
        let request = http::Request::get(path).body(Vec::new()).ok()?;
        client.request_text(request).await.ok().map(|_| client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the server's log\n{}", self.log());
        }
    }
}

/// Returns the first words of the command line: the program with its subcommand, and what that is run by.
fn words(under: &[String], upstream: Option<&Path>) -> Vec<String> {
    let mut words = under.to_vec();
    words.push(env!("CARGO_BIN_EXE_ringwatch").to_owned());
    match upstream {
        None => words.push("serve".to_owned()),
        Some(upstream) => {
            let kubeconfig = upstream.display().to_string();
            words.extend(["relay".to_owned(), "--kubeconfig".to_owned(), kubeconfig]);
        }
    }
    words
}

fn spawn(folder: &TempDir, port: u16, words: &[String], arguments: &[String]) -> Child {
    let path = folder.path().join("log");
    let log = File::options()
        .create(true)
        .append(true)
        .open(path)
        .expect("a log file");
    let has_store = words.iter().any(|word| word == "serve");
    Command::new(&words[0])
        .args(&words[1..])
        .arg("--data-dir")
        .arg(folder.path().join("data"))
        .args(["--secure-port", &port.to_string()])
        .args(without_accounts(arguments).filter(|_| has_store))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log file"))
        .stderr(log)
        .spawn()
        .expect("the server's binary")
}

/// Disables the admission plugin that refuses pods without an account, since most tests run no controller that creates
/// accounts, unless the test's own flags name it.
fn without_accounts(arguments: &[String]) -> Option<&'static str> {
    let named = arguments.iter().any(|it| it.contains("ServiceAccount"));
    (!named).then_some("--disable-admission-plugins=ServiceAccount")
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(sent.expect("kill").success(), "cannot signal the server");
}
