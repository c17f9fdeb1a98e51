//! `ringwatch serve`: puts everything together, runs it, and takes it apart.
//!
//! Whatever can be wrong with the flags' files, the port or the store shows at start as one
//! [`StartError`].

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch::storage::cacher::{Cacher, Feed};
use ringwatch_apiserver::shutdown::{Signals, Steps};
use ringwatch_apiserver::threads::{RuntimeHandles, Threads};
use ringwatch_apiserver::transport::current_credentials::CurrentCredentials;
use ringwatch_apiserver::transport::listener::Listener;
use ringwatch_apiserver::transport::open_files;
use ringwatch_controllers::api_endpoints::ApiEndpoints;
use ringwatch_tls::error::StartError;
use ringwatch_tls::private_file;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::assembly::Assembly;
use super::backend_factory::{self, OpenBackend};
use super::bootstrap::{PostStartHooks, bootstrap};
use super::flags::{ServeFlags, StorageBackend};
use super::kubeconfig;
use super::security::Security;

/// The start is announced when all caches are filled, but at the latest after this time.
const CACHES_FILLED_SECONDS_MAX: u64 = 20;
/// Background tasks have this long to end when told to.
const BACKGROUND_END_SECONDS_MAX: u64 = 2;
/// Telling others that the server is gone has this long; later its lease tells them.
const TAKING_BACK_SECONDS_MAX: u64 = 2;

/// Runs the server until a signal ends it.
///
/// # Errors
/// The reason why the server does not start, or that it was told twice to end.
pub fn run(flags: &ServeFlags) -> Result<(), StartError> {
    open_files::raise_limit();
    let threads = Threads::start()?;
    let runtimes = threads.handles();
    let result = threads.serving.block_on(until_signalled(flags, runtimes));
    threads.end();
    result
}

async fn until_signalled(flags: &ServeFlags, runtimes: RuntimeHandles) -> Result<(), StartError> {
    let mut signals = Signals::new().map_err(|error| {
        StartError::new(
            "take over SIGTERM and SIGINT",
            error,
            "run it where signals can be handled",
        )
    })?;
    let server = tokio::select! {
        server = Server::start(flags, runtimes) => server?,
        () = signals.next() => return Ok(()),
    };
    announce(flags, &server);
    signals.next().await;
    tokio::select! {
        () = server.end(flags.serving.shutdown_delay_duration) => Ok(()),
        () = signals.next() => Err(StartError::new(
            "end in order",
            "a second signal came",
            "what was in progress has been cut off",
        )),
    }
}

/// A server that serves.
pub(crate) struct Server {
    /// The URL at which this machine reaches it.
    pub(crate) url: String,
    /// The credentials by which it proves its identity, and the admin's.
    pub(crate) credentials: CurrentCredentials,
    data_dir: PathBuf,
    kubeconfig: PathBuf,
    steps: Steps,
    listener: JoinHandle<JoinSet<()>>,
    /// Ends the watches of caches.
    feed: Feed,
    /// Compactor, caches and counts, which run until the end.
    background: JoinSet<()>,
    /// Ends the background tasks.
    background_end: CancellationToken,
    /// Publishes the address of the server, until it is to withdraw it.
    telling: Option<JoinHandle<()>>,
    taking_back: CancellationToken,
    backend: OpenBackend,
    clock: Clock,
}

impl Server {
    /// Starts a server. It serves when this returns, unless caches take longer to be filled than a bounded time.
    ///
    /// # Errors
    /// A file or the store cannot be used, or the address is taken.
    pub(crate) async fn start(
        flags: &ServeFlags,
        runtimes: RuntimeHandles,
    ) -> Result<Self, StartError> {
        let clock = Clock::real();
        let data_dir = data_dir(&flags.data_dir)?;
        let security = Security::load(flags, &clock)?;
        let bind = SocketAddr::new(flags.serving.bind_address, flags.serving.secure_port);
        let listener = Listener::bind(bind).await?;
        let address = listener.address();
        let backend = backend_factory::open(flags, &data_dir, &clock).await?;

        let url = kubeconfig::local_url(address);
        let kubeconfig_path = data_dir.join("kubeconfig");
        let credentials = security.credentials.clone();
        kubeconfig::write(&kubeconfig_path, &url, &credentials.borrow()).map_err(|error| {
            StartError::new(
                format!("write {}", kubeconfig_path.display()),
                error,
                "choose another --data-dir, or make this one writable",
            )
        })?;

        let steps = Steps::default();
        let background_end = CancellationToken::new();
        let mut background = JoinSet::new();
        let assembly = Assembly {
            flags,
            backend: Arc::clone(&backend.backend),
            embedded: backend.embedded.clone(),
            hooks: PostStartHooks::default(),
            steps: &steps,
            end: &background_end,
            runtimes,
            clock: clock.clone(),
        };
        let kept = kubeconfig::keep(kubeconfig_path.clone(), url.clone(), credentials.clone());
        assembly.run(kept, &mut background);
        let assembled = assembly.build(security, address, Registry::default(), &mut background);
        let stop = steps.stop_accepting.clone();
        let listener = tokio::runtime::Handle::current()
            .spawn(listener.run(assembled.connections.clone(), stop));

        wait_until_filled(&assembled.cachers, &clock).await;
        bootstrap(&assembled, address.port(), &clock).await?;
        if let Some(repair) = assembled.repair {
            let end = background_end.clone();
            background.spawn(async move {
                end.run_until_cancelled(repair.run()).await;
            });
        }
        let taking_back = CancellationToken::new();
        let telling = tell_addresses(assembled.api_endpoints, &taking_back).await;
        Ok(Self {
            url,
            credentials,
            data_dir,
            kubeconfig: kubeconfig_path,
            steps,
            listener,
            feed: assembled.feed,
            background,
            background_end,
            telling,
            taking_back,
            backend,
            clock,
        })
    }

    /// Ends in order: first what clients see, then what feeds it, then the store.
    async fn end(self, delay: Duration) {
        self.taking_back.cancel();
        if let Some(telling) = self.telling {
            let at_most = Duration::from_secs(TAKING_BACK_SECONDS_MAX);
            let _ = self.clock.timeout(at_most, telling).await;
        }
        let feed = self.feed;
        let drain = async { feed.drain() };
        let clock = &self.clock;
        self.steps.take(delay, self.listener, drain, clock).await;
        self.background_end.cancel();
        let mut background = self.background;
        let all = async { while background.join_next().await.is_some() {} };
        let at_most = Duration::from_secs(BACKGROUND_END_SECONDS_MAX);
        let _ = clock.timeout(at_most, all).await;
        background.shutdown().await;
        self.backend.close(clock).await;
        tracing::info!("ended");
    }
}

/// The data directory as an absolute path; created if it is not there.
fn data_dir(path: &Path) -> Result<PathBuf, StartError> {
    let wrong = |error: std::io::Error| {
        StartError::new(
            format!("use the data directory {}", path.display()),
            error,
            "choose another --data-dir, or make this one writable",
        )
    };
    let path = std::path::absolute(path).map_err(wrong)?;
    private_file::create_directory(&path).map_err(wrong)?;
    Ok(path)
}

/// Tells others where the server is, now and from then on.
async fn tell_addresses(
    api_endpoints: Option<ApiEndpoints>,
    taking_back: &CancellationToken,
) -> Option<JoinHandle<()>> {
    let api_endpoints = api_endpoints?;
    if let Err(error) = api_endpoints.reconcile().await {
        tracing::warn!(%error, "cannot publish the address of the API yet");
    }
    Some(tokio::runtime::Handle::current().spawn(api_endpoints.run(taking_back.clone())))
}

/// Waits until lists and watches are served from memory. Whoever comes earlier is told to retry.
async fn wait_until_filled(cachers: &[Arc<Cacher>], clock: &Clock) {
    let all = async {
        for cacher in cachers {
            if let Err(error) = cacher.ready().await {
                tracing::warn!(%error, "a watch cache is not filled");
            }
        }
    };
    let at_most = Duration::from_secs(CACHES_FILLED_SECONDS_MAX);
    if clock.timeout(at_most, all).await.is_err() {
        tracing::warn!("watch caches are still being filled");
    }
}

/// Tells the newcomer where everything is. Nobody is left to tell if that fails.
fn announce(flags: &ServeFlags, server: &Server) {
    let Server { url, data_dir, .. } = server;
    let store = match flags.backend() {
        StorageBackend::Embedded => format!("embedded, in {}", data_dir.display()),
        StorageBackend::Memory => "in memory; nothing is kept when the server ends".to_owned(),
        StorageBackend::Etcd3 => format!("etcd at {}", flags.etcd.etcd_servers.join(", ")),
    };
    let version = env!("CARGO_PKG_VERSION");
    let kubeconfig = server.kubeconfig.display();
    let _ = writeln!(
        std::io::stdout(),
        "ringwatch {version} serves the Kubernetes API at {url}\n  \
         store       {store}\n  \
         kubeconfig  {kubeconfig}\n  \
         try         kubectl --kubeconfig {kubeconfig} get namespaces"
    );
}
