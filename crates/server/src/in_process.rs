//! An API server in this process, for the tests of clients and operators: what envtest is in Go, without binaries.

use std::ffi::OsString;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use clap::Parser;
use ringwatch_apiserver::threads::Threads;
use ringwatch_tls::error::StartError;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::flags::ServeFlags;
use super::kubeconfig;
use super::serve::Server;

/// The flags with which every such server starts; those of the builder come after them.
const FLAGS: [&str; 4] = [
    "ringwatch",
    "--storage-backend=memory",
    "--bind-address=127.0.0.1",
    "--secure-port=0",
];

/// A Kubernetes API server on a free port of the loopback interface, on threads of its own.
///
/// It keeps its objects in memory, and ends when it is dropped. There may be several in one process. No controllers run:
/// deployments make no pods, and nobody deletes dependents, as with envtest.
///
/// Nothing is installed in the process: no logger, no signal handlers, no limits. Log messages go to the caller's `tracing`
/// subscriber, if there is one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ringwatch_tls::error::StartError> {
/// let server = ringwatch_server::InProcessServer::builder()
///     .flag("--authorization-mode=RBAC")
///     .start()
///     .await?;
/// assert!(server.url().starts_with("https://127.0.0.1:"));
/// assert!(server.kubeconfig().contains("client-certificate-data"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InProcessServer {
    running: Running,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How a running server is reached.
#[derive(Debug)]
struct Running {
    url: String,
    authority: String,
    certificate: String,
    key: String,
}

/// Options of an [`InProcessServer`].
#[derive(Clone, Debug, Default)]
pub struct Builder {
    flags: Vec<OsString>,
}

/// The flags, as the command line has them.
#[derive(Parser, Debug)]
struct CommandLine {
    #[command(flatten)]
    flags: ServeFlags,
}

impl Builder {
    /// Adds a flag of `ringwatch serve`, such as `--authorization-mode=RBAC`; a later one replaces an earlier one.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<OsString>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Starts the server. Its built-in resources are served, and its first objects are there, when this returns.
    ///
    /// # Errors
    /// A flag is wrong, a file that one names cannot be used, or the system allows no more threads or files.
    pub async fn start(self) -> Result<InProcessServer, StartError> {
        let folder = tempfile::tempdir().map_err(|error| {
            let advice = "make the folder for temporary files (TMPDIR) writable";
            StartError::new("create a data directory", error, advice)
        })?;
        let flags = self.parse(&folder)?;
        let (started, starting) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("in-process".to_owned())
            .spawn(move || serve(&flags, started, stopped, folder))
            .map_err(|error| {
                let advice = "raise the limit of threads (ulimit -u)";
                StartError::new("start a thread", error, advice)
            })?;
        let running = starting.await.unwrap_or_else(|_| {
            let why = "its thread ended";
            Err(StartError::new("start the server", why, "look at the log"))
        })?;
        Ok(InProcessServer {
            running,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn parse(self, folder: &TempDir) -> Result<ServeFlags, StartError> {
        let mut line: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
        line.extend(["--data-dir".into(), folder.path().into()]);
        line.extend(self.flags);
        let parsed = CommandLine::try_parse_from(line).map_err(StartError::line)?;
        parsed.flags.check().map_err(StartError::line)?;
        Ok(parsed.flags)
    }
}

/// Runs a server until its owner is dropped.
fn serve(
    flags: &ServeFlags,
    started: oneshot::Sender<Result<Running, StartError>>,
    stopped: oneshot::Receiver<()>,
    folder: TempDir,
) {
    let threads = match Threads::start() {
        Ok(threads) => threads,
        Err(error) => return drop(started.send(Err(error))),
    };
    let runtimes = threads.handles();
    threads.serving.block_on(async {
        match Server::start(flags, runtimes).await {
            Ok(server) => {
                // An owner that is gone already has dropped the other end of `stopped` as well.
                let _ = started.send(Ok(Running::new(&server)));
                let _ = stopped.await;
            }
            Err(error) => drop(started.send(Err(error))),
        }
    });
    threads.end();
    drop(folder);
}

impl Running {
    fn new(server: &Server) -> Self {
        let credentials = Arc::clone(&server.credentials.borrow());
        Self {
            url: server.url.clone(),
            authority: credentials.authority.clone(),
            certificate: credentials.admin.certificate.clone(),
            key: credentials.admin.key.clone(),
        }
    }
}

impl InProcessServer {
    /// Returns the options of a server.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Starts a server with the defaults: everyone who is authenticated may do everything.
    ///
    /// # Errors
    /// The system allows no more threads or files.
    pub async fn start() -> Result<Self, StartError> {
        Builder::default().start().await
    }

    /// Returns the URL of the server, such as `https://127.0.0.1:34567`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.running.url
    }

    /// Returns the authority by which clients verify the server, in PEM.
    #[must_use]
    pub fn certificate_authority(&self) -> &str {
        &self.running.authority
    }

    /// Returns the certificate and the key of the admin, who is in the group `system:masters`, in PEM.
    #[must_use]
    pub fn admin(&self) -> (&str, &str) {
        (&self.running.certificate, &self.running.key)
    }

    /// Returns a kubeconfig of the admin, in YAML.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let Running {
            url,
            authority,
            certificate,
            key,
        } = &self.running;
        kubeconfig::render(url, authority, certificate, key)
    }
}

/// Ends the server: its connections are closed and its threads have ended afterwards.
impl Drop for InProcessServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A server that panicked has said so.
            let _ = thread.join();
        }
    }
}
