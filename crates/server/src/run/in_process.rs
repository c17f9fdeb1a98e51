//! An API server in this process, for the tests of clients and operators: what envtest is in Go, without binaries.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use clap::Parser;
use http::{Request, Response};
use ringwatch::clock::Clock;
use ringwatch::storage::backend::Backend;
use ringwatch_authentication::{Peer, SigningKey};
use ringwatch_endpoints::ENCODINGS_BYTES_MAX_DEFAULT;
use ringwatch_filters::threads::{RuntimeHandles, Threads};
use ringwatch_filters::{ClientSide, Filters};
use ringwatch_http::{Body, Connections, Protocol, full};
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem;
use ringwatch_tls::private_file::{Access as FileAccess, create};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::serve::{Server, ServerOptions};
use crate::config::admin_kubeconfig::render;
use crate::config::flags::ServeFlags;

/// The flags of every server in process; those of the builder follow them.
const FLAGS: [&str; 4] = [
    "ringwatch",
    "--storage-backend=memory",
    "--bind-address=127.0.0.1",
    "--secure-port=0",
];

/// The admission plugin that refuses pods without an account. Only the controllers of a test cluster create accounts;
/// without these it is disabled unless a flag names it.
const SERVICE_ACCOUNT: &str = "ServiceAccount";

/// Linux' file system in memory.
const FILES_IN_MEMORY: &str = "/dev/shm";

/// A Kubernetes API server on a free port of the loopback interface.
///
/// It keeps its objects in memory and runs on threads of its own, unless its [`Builder`] sets otherwise, and ends when
/// it is dropped. One process can have several. No controllers of workloads run: deployments create no pods, and
/// dependents of deleted objects stay, as with envtest. The admission plugin ServiceAccount is disabled, since no
/// controller creates accounts; `--enable-admission-plugins=ServiceAccount` enables it. With `--test-cluster`
/// namespaces and dependents go, namespaces have accounts, and the plugin is enabled.
///
/// The certificates and the kubeconfig are files in a temporary folder, which is deleted at the end. `--data-dir` sets
/// another folder; use it with a store on disk.
///
/// Nothing is installed in the process: no logger, no signal handlers, no limits. Log messages go to the caller's
/// `tracing` subscriber, if there is one.
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
/// let namespace = http::Request::get("/api/v1/namespaces/default");
/// let response = server.answer(namespace.body(Default::default()).unwrap()).await;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InProcessServer {
    access: Access,
    /// Held for its drop, which ends the server.
    _running: Running,
}

/// The addresses and credentials of a running server.
#[derive(Debug)]
struct Access {
    url: String,
    authority: String,
    certificate: String,
    key: String,
    /// The admin, as the certificate identifies it.
    admin: Peer,
    filters: Arc<Filters>,
    connections: Connections,
}

/// A server that runs until this is dropped.
#[derive(Debug)]
enum Running {
    /// On threads of its own, which end soon after `stop` is dropped.
    Threads {
        stop: Option<oneshot::Sender<()>>,
        thread: Option<JoinHandle<()>>,
    },
    /// On the caller's runtime. The folder is deleted after the server has gone.
    Here {
        _server: Box<Server>,
        _folder: TempDir,
    },
}

/// Options of an [`InProcessServer`].
#[derive(Clone)]
pub struct Builder {
    flags: Vec<OsString>,
    backend: Option<Arc<dyn Backend>>,
    encodings_bytes_max: usize,
    clock: Clock,
    on_current_runtime: bool,
}

impl fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut builder = formatter.debug_struct("Builder");
        builder.field("flags", &self.flags).finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            flags: Vec::new(),
            backend: None,
            encodings_bytes_max: ENCODINGS_BYTES_MAX_DEFAULT,
            clock: Clock::real(),
            on_current_runtime: false,
        }
    }
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

    /// Keeps the objects in this store instead of one in memory. Several servers may share one, one after the other or
    /// at the same time. The caller runs the store's tasks, such as the expiry of leases. Servers of one process accept
    /// each other's service account tokens.
    #[must_use]
    pub fn backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Sets the maximum number of bytes of the cache of encoded objects; 0 disables it.
    #[must_use]
    pub fn encodings_bytes_max(mut self, bytes: usize) -> Self {
        self.encodings_bytes_max = bytes;
        self
    }

    /// Sets the clock by which the server works: timestamps, expiry, deadlines. Only the protocols' own timers, such as
    /// those of HTTP/2, go by tokio's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Runs the server on the runtime that calls [`start`](Self::start), rather than on threads of its own. So a
    /// runtime of one thread decides what runs when; but the server works only while that runtime is driven, and large
    /// requests keep small ones waiting.
    #[must_use]
    pub fn on_current_runtime(mut self) -> Self {
        self.on_current_runtime = true;
        self
    }

    /// Starts the server. Its built-in resources are served, and its first objects are there, when this returns.
    ///
    /// # Errors
    /// A flag is wrong, a file that one names cannot be used, or the system allows no more threads or files.
    pub async fn start(self) -> Result<InProcessServer, StartError> {
        let folder = folder()?;
        let flags = self.parse(&folder)?;
        if self.on_current_runtime {
            let here = Handle::current();
            let options = self.options(RuntimeHandles {
                large: here.clone(),
                expressions: here.clone(),
                background: here,
            });
            let server = Box::new(Server::start(&flags, options).await?);
            return Ok(InProcessServer {
                access: Access::new(&server)?,
                _running: Running::Here {
                    _server: server,
                    _folder: folder,
                },
            });
        }
        self.on_own_threads(flags, folder).await
    }

    /// Starts the server on threads of its own.
    async fn on_own_threads(
        self,
        flags: ServeFlags,
        folder: TempDir,
    ) -> Result<InProcessServer, StartError> {
        let (started, starting) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("in-process".to_owned())
            .spawn(move || self.run(&flags, started, stopped, folder))
            .map_err(|error| {
                let advice = "raise the limit of threads (ulimit -u)";
                StartError::new("start a thread", error, advice)
            })?;
        let access = starting.await.unwrap_or_else(|_| {
            let why = "its thread ended";
            Err(StartError::new("start the server", why, "look at the log"))
        })?;
        Ok(InProcessServer {
            access,
            _running: Running::Threads {
                stop: Some(stop),
                thread: Some(thread),
            },
        })
    }

    fn parse(&self, folder: &TempDir) -> Result<ServeFlags, StartError> {
        let mut line: Vec<OsString> = FLAGS.iter().map(OsString::from).collect();
        line.extend(["--data-dir".into(), folder.path().into()]);
        line.extend(self.flags.iter().cloned());
        let parsed = CommandLine::try_parse_from(line).map_err(StartError::line)?;
        let mut flags = parsed.flags;
        let signing_key = &mut flags.service_accounts.service_account_signing_key_file;
        // A data directory of the caller keeps its own key, so that tokens stay valid after a restart.
        if signing_key.is_none() && flags.data_dir == folder.path() {
            *signing_key = Some(write_signing_key(folder)?);
        }
        let plugins = &mut flags.admission;
        if !flags.cluster.test_cluster.is_on()
            && plugins.admission_control.is_empty()
            && !plugins.enable_admission_plugins.contains(&SERVICE_ACCOUNT)
            && !plugins.disable_admission_plugins.contains(&SERVICE_ACCOUNT)
        {
            plugins.disable_admission_plugins.push(SERVICE_ACCOUNT);
        }
        flags.check().map_err(StartError::line)?;
        Ok(flags)
    }

    fn options(&self, runtimes: RuntimeHandles) -> ServerOptions {
        ServerOptions {
            runtimes,
            backend: self.backend.clone(),
            encodings_bytes_max: self.encodings_bytes_max,
            controls: None,
            clock: self.clock.clone(),
        }
    }

    /// Runs a server on threads of its own until its owner drops the other end of `stopped`.
    fn run(
        &self,
        flags: &ServeFlags,
        started: oneshot::Sender<Result<Access, StartError>>,
        stopped: oneshot::Receiver<()>,
        folder: TempDir,
    ) {
        let threads = match Threads::start() {
            Ok(threads) => threads,
            Err(error) => return drop(started.send(Err(error))),
        };
        let options = self.options(threads.handles());
        threads.serving.block_on(async {
            match Server::start(flags, options).await {
                Ok(server) => {
                    // If the owner is gone already, `stopped` is closed as well.
                    let _ = started.send(Access::new(&server));
                    let _ = stopped.await;
                }
                Err(error) => drop(started.send(Err(error))),
            }
        });
        threads.end();
        drop(folder);
    }
}

/// Creates a folder for the files of a server: in `TMPDIR` if set, else in memory if the system has a file system for
/// that. A server writes its certificates durably, which on a busy disk takes longer than the rest of the start.
fn folder() -> Result<TempDir, StartError> {
    let folder = match std::env::var_os("TMPDIR") {
        Some(_) => TempDir::new(),
        None => TempDir::new_in(FILES_IN_MEMORY).or_else(|_| TempDir::new()),
    };
    folder.map_err(|error| {
        let advice = "set TMPDIR to a writable folder";
        StartError::new("create a data directory", error, advice)
    })
}

/// Writes the signing key of service account tokens that all servers of this process without a key of their own share,
/// so that servers with one store accept each other's tokens. Generating an RSA key for each would take most of the
/// start.
fn write_signing_key(folder: &TempDir) -> Result<PathBuf, StartError> {
    static KEY: Mutex<Option<String>> = Mutex::new(None);
    let mut key = KEY.lock().unwrap_or_else(PoisonError::into_inner);
    let pem = match key.take() {
        Some(pem) => pem,
        None => SigningKey::generate_ecdsa_pem().map_err(|why| {
            StartError::new("generate a key for service accounts", why, "report this")
        })?,
    };
    let pem = key.insert(pem);
    let path = folder.path().join("sa.key");
    create(&path, pem.as_bytes(), FileAccess::Owner).map_err(|error| {
        let advice = "set TMPDIR to a writable folder";
        StartError::new(format!("write {}", path.display()), error, advice)
    })?;
    Ok(path)
}

impl Access {
    fn new(server: &Server) -> Result<Self, StartError> {
        let credentials = Arc::clone(&server.credentials.borrow());
        let chain = pem::certificates(&credentials.admin.certificate).map_err(|why| {
            let advice = "report this";
            StartError::new("read the admin's certificate", why, advice)
        })?;
        Ok(Self {
            url: server.url.clone(),
            authority: credentials.authority.clone(),
            certificate: credentials.admin.certificate.clone(),
            key: credentials.admin.key.clone(),
            admin: credentials.clients.identify(&chain, server.clock.wall()),
            filters: Arc::clone(&server.filters),
            connections: server.connections.clone(),
        })
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
        &self.access.url
    }

    /// Returns the authority by which clients verify the server, in PEM.
    #[must_use]
    pub fn certificate_authority(&self) -> &str {
        &self.access.authority
    }

    /// Returns the certificate and the key of the admin, who is in the group `system:masters`, in PEM.
    #[must_use]
    pub fn admin(&self) -> (&str, &str) {
        (&self.access.certificate, &self.access.key)
    }

    /// Returns a kubeconfig of the admin, in YAML.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let Access {
            url,
            authority,
            certificate,
            key,
            ..
        } = &self.access;
        render(url, authority, certificate, key)
    }

    /// Answers a request of the admin without a socket, from authentication to the last frame of the body: of the API,
    /// of health, or of `/metrics`. The header `Impersonate-User` asks as somebody else.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Body> {
        let filters = &self.access.filters;
        let admin = ClientSide {
            address: None,
            shows_certificate: false,
            peer: &self.access.admin,
        };
        filters.answer(request.map(full), admin, &|_| {}).await
    }

    /// Serves HTTP without TLS over an I/O object, such as an end of [`tokio::io::duplex`], until either side wants to
    /// end. Its client is whom the token of each request names.
    pub fn serve_http<T>(
        &self,
        io: T,
        protocol: Protocol,
    ) -> impl Future<Output = ()> + Send + 'static
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connections = self.access.connections.clone();
        async move { connections.serve_http(io, protocol).await }
    }
}

/// Ends the server: its connections are closed and its threads have ended afterwards.
impl Drop for Running {
    fn drop(&mut self) {
        let Self::Threads { stop, thread } = self else {
            return;
        };
        drop(stop.take());
        if let Some(thread) = thread.take() {
            // A panic of the server has been printed already.
            let _ = thread.join();
        }
    }
}
