//! `ringwatch serve`: starts a server, and ends it in order when a signal comes.
//!
//! Errors in the files of flags, the port or the store are returned from the start as one [`StartError`].

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::Backend;
use ringwatch::storage::cacher::{Cacher, Feed};
use ringwatch_controllers::api_endpoints::ApiEndpoints;
use ringwatch_endpoints::ENCODINGS_BYTES_MAX_DEFAULT;
use ringwatch_endpoints::current_credentials::{CurrentCredentials, tls};
use ringwatch_filters::Filters;
use ringwatch_filters::threads::RuntimeHandles;
use ringwatch_http::{Connections, Listener};
use ringwatch_tls::error::StartError;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::announcement;
use super::audit::RunningAudit;
use super::backend::RunningBackend;
use super::background::Background;
use super::process;
use crate::build::backend;
use crate::build::bootstrap::Bootstrap;
use crate::build::inputs::ServerInputs;
use crate::build::server::build;
use crate::config::admin_kubeconfig::{self, keep_kubeconfig};
use crate::config::audit_files::AuditFiles;
use crate::config::data_dir::data_dir;
use crate::config::flags::ServeFlags;
use crate::config::security::Security;
use crate::debug::ProcessControls;
use crate::shutdown::{Signals, Steps};

/// Maximum time that the start waits for caches to be filled before it is announced.
const CACHES_FILLED_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time to withdraw the address of the server; after it the expiry of its lease removes the address.
const WITHDRAWAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the server until a signal ends it. The controls of the process are for authorized users.
///
/// # Errors
/// The reason why the server does not start, or that it was told twice to end.
pub fn run(
    flags: &ServeFlags,
    controls: Option<Arc<dyn ProcessControls>>,
) -> Result<(), StartError> {
    process::run(async |runtimes, signals| {
        let options = ServerOptions {
            controls,
            ..ServerOptions::new(runtimes)
        };
        until_signalled(flags, options, signals).await
    })
}

async fn until_signalled(
    flags: &ServeFlags,
    options: ServerOptions,
    signals: &mut Signals,
) -> Result<(), StartError> {
    let delay = flags.serving.shutdown_delay_duration;
    let (mut server, first_steps) = tokio::select! {
        listening = Server::listen(flags, options) => listening?,
        () = signals.next() => return Ok(()),
    };
    // Requests are served from here on, so that a server that is told to end, or cannot be completed, is ended in
    // order.
    let completed = tokio::select! {
        completed = server.complete(first_steps) => completed,
        () = signals.next() => return process::end(server.end(delay), signals).await,
    };
    if let Err(error) = completed {
        process::end(server.end(delay), signals).await?;
        return Err(error);
    }
    announce(flags, &server);
    signals.next().await;
    process::end(server.end(delay), signals).await
}

/// Settings of a server that have no flag.
pub(crate) struct ServerOptions {
    /// The runtimes of the threads beside those that serve.
    pub(crate) runtimes: RuntimeHandles,
    /// A store that replaces the one selected by flags.
    pub(crate) backend: Option<Arc<dyn Backend>>,
    /// Maximum number of bytes of the cache of encoded objects.
    pub(crate) encodings_bytes_max: usize,
    /// The profiles and the log level of the process; `None` if they are not the server's to serve.
    pub(crate) controls: Option<Arc<dyn ProcessControls>>,
    /// The time by which the server works.
    pub(crate) clock: Clock,
}

impl ServerOptions {
    /// Returns the options of a server with these threads that is configured by flags alone.
    pub(crate) fn new(runtimes: RuntimeHandles) -> Self {
        Self {
            runtimes,
            backend: None,
            encodings_bytes_max: ENCODINGS_BYTES_MAX_DEFAULT,
            controls: None,
            clock: Clock::real(),
        }
    }
}

/// A server that serves. When it is dropped, its tasks and connections are aborted.
#[derive(Debug)]
pub(crate) struct Server {
    /// The URL at which this machine reaches it.
    pub(crate) url: String,
    /// Answers the requests of its connections.
    pub(crate) filters: Arc<Filters>,
    /// Serves its connections.
    pub(crate) connections: Connections,
    pub(crate) credentials: CurrentCredentials,
    data_dir: PathBuf,
    kubeconfig: PathBuf,
    steps: Steps,
    listener: AbortOnDropHandle<JoinSet<()>>,
    /// Ends the watches of caches.
    feed: Feed,
    /// The tasks of its parts.
    background: Background,
    /// Writes the records of requests.
    audit: Option<RunningAudit>,
    /// Publishes the address of the server, until it is to withdraw it.
    publishing: Option<AbortOnDropHandle<()>>,
    withdrawal: CancellationToken,
    /// The store of the objects, and those of some resources alone.
    backends: Vec<RunningBackend>,
    pub(crate) clock: Clock,
}

/// The inputs of [`Server::complete`].
pub(crate) struct FirstSteps {
    port: u16,
    cachers: Vec<Arc<Cacher>>,
    bootstrap: Bootstrap,
    api_endpoints: Option<ApiEndpoints>,
}

impl Server {
    /// Starts a server. It serves when this returns, unless caches take longer to be filled than a bounded time.
    ///
    /// # Errors
    /// As [`Self::listen`] and [`Self::complete`].
    pub(crate) async fn start(
        flags: &ServeFlags,
        options: ServerOptions,
    ) -> Result<Self, StartError> {
        let (mut server, first_steps) = Self::listen(flags, options).await?;
        server.complete(first_steps).await?;
        Ok(server)
    }

    /// Starts to listen. The server answers requests when this returns, though it may refer those to lists and watches
    /// to a later time, and its first objects are not there yet.
    ///
    /// # Errors
    /// A file or the store cannot be used, or the address is taken.
    async fn listen(
        flags: &ServeFlags,
        options: ServerOptions,
    ) -> Result<(Self, FirstSteps), StartError> {
        let clock = options.clock;
        flags.notices().iter().for_each(|it| tracing::warn!("{it}"));
        let data_dir = data_dir(&flags.data_dir)?;
        let security = Security::load(flags, &clock)?;
        // A plugin that does not answer yet is asked again later, and keeps the server from being ready.
        if let Err(error) = security.objects.encryption.encryption.check_kms().await {
            tracing::warn!(error, "KMS plugins are not ready");
        }
        let audit = AuditFiles::load(&flags.audit, &clock)?;
        let bind = SocketAddr::new(flags.serving.bind_address, flags.serving.secure_port);
        let listener = Listener::bind(bind, flags.serving.permit_port_sharing).await?;
        let address = listener.address();
        let ledger = Ledger::new(flags.memory_budget());
        let (given, memory) = (options.backend, &ledger);
        let (backend, its_tasks) = backend::open(flags, given, &data_dir, memory, &clock).await?;
        let overrides = backend::open_overrides(flags, &clock).await?;
        let url = admin_kubeconfig::local_url(address);
        let kubeconfig = data_dir.join("kubeconfig");
        let keeping = keep_kubeconfig(&kubeconfig, &url, &security.credentials)?;
        let steps = process::steps(&flags.serving);
        let inputs = ServerInputs {
            flags,
            backend: &backend,
            overrides: &overrides,
            ledger,
            address,
            encodings_bytes_max: options.encodings_bytes_max,
            steps: &steps,
            controls: options.controls.as_ref(),
            runtimes: &options.runtimes,
            clock: clock.clone(),
        };
        let credentials = security.credentials.clone();
        let (built, mut tasks) = build(&inputs, security, audit);
        tasks.background("kubeconfig of the admin", keeping);
        let threads = &options.runtimes.background;
        let backends = RunningBackend::run_all(&backend, its_tasks, overrides, threads)?;
        let background = Background::run(tasks, threads);
        let audit = built
            .audit
            .map(|it| RunningAudit::run(it, threads))
            .transpose()?;
        let stop = steps.stop_accepting.clone();
        let (connections, tls) = (built.connections, tls(credentials.clone()));
        let listener = spawn(listener.run(connections.clone(), tls, stop));
        let server = Self {
            url,
            filters: built.filters,
            connections,
            credentials,
            data_dir,
            kubeconfig,
            steps,
            listener,
            feed: built.feed,
            background,
            audit,
            publishing: None,
            withdrawal: CancellationToken::new(),
            backends,
            clock,
        };
        let first_steps = FirstSteps {
            port: address.port(),
            cachers: built.cachers,
            bootstrap: built.bootstrap,
            api_endpoints: built.api_endpoints,
        };
        Ok((server, first_steps))
    }

    /// Waits a bounded time for the caches to be filled, creates the first objects and publishes the server's address.
    ///
    /// # Errors
    /// The first objects cannot be written.
    async fn complete(&mut self, first_steps: FirstSteps) -> Result<(), StartError> {
        let bootstrap = first_steps.bootstrap;
        wait_until_filled(&first_steps.cachers, &self.clock).await;
        bootstrap.hooks.storage_awaited.set();
        bootstrap.run(first_steps.port).await?;
        if let Some(api_endpoints) = first_steps.api_endpoints {
            let (tried, first_try) = oneshot::channel();
            // A server that is told to end meanwhile withdraws the address that it may have published.
            self.publishing = Some(spawn(api_endpoints.run(tried, self.withdrawal.clone())));
            let _ = first_try.await;
        }
        bootstrap.hooks.address_published.set();
        Ok(())
    }

    /// Ends the server in order: withdraws its address while it is no longer ready, ends the listener, watches and
    /// connections, writes the last audit events, then ends the background tasks, then closes the store.
    async fn end(self, delay: Duration) {
        let clock = &self.clock;
        let (withdrawal, publishing) = (self.withdrawal, self.publishing);
        let withdrawal = async {
            withdrawal.cancel();
            if let Some(publishing) = publishing {
                let _ = clock.timeout(WITHDRAWAL_TIMEOUT, publishing.detach()).await;
            }
        };
        let feed = self.feed;
        let end_watches = async { feed.drain() };
        let listener = self.listener.detach();
        self.steps
            .take(delay, withdrawal, listener, end_watches, clock)
            .await;
        if let Some(audit) = self.audit {
            audit.finish(clock).await;
        }
        self.background.stop(clock).await;
        for backend in self.backends {
            backend.close(clock).await;
        }
        tracing::info!("ended");
    }
}

/// Spawns a task on the serving threads, which are the caller's, that is aborted when its handle is dropped.
pub(crate) fn spawn<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> AbortOnDropHandle<T> {
    AbortOnDropHandle::new(Handle::current().spawn(task))
}

/// Waits until lists and watches are served from memory. Earlier requests are told to retry.
async fn wait_until_filled(cachers: &[Arc<Cacher>], clock: &Clock) {
    let all = async {
        for cacher in cachers {
            if let Err(error) = cacher.ready().await {
                tracing::warn!(%error, "a watch cache is not filled");
            }
        }
    };
    if clock.timeout(CACHES_FILLED_TIMEOUT, all).await.is_err() {
        tracing::warn!("watch caches are still being filled");
    }
}

/// Prints the announcement. An error of standard output is ignored.
fn announce(flags: &ServeFlags, server: &Server) {
    let text = announcement::of_server(flags, &server.url, &server.data_dir, &server.kubeconfig);
    let _ = writeln!(std::io::stdout(), "{text}");
}
