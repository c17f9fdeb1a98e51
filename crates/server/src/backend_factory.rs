//! Opens the backend that the flags select, and runs its tasks: for the embedded store a thread that commits, the
//! expiry of leases and the recovery after failed writes; for etcd a task that checks the versions of its members.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::etcd::{Config, Etcd, TlsFiles};
use ringwatch::storage::backend::{Backend, BackendError};
use ringwatch::storage::etcd3;
use ringwatch_apiserver::health::{Check, Health, Scope, check};
use ringwatch_tls::error::StartError;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::flags::{EtcdFlags, ServeFlags, StorageBackend};

/// The database of the embedded store, in the data directory.
const DATABASE: &str = "store.redb";
/// Maximum time until etcd is reached at start.
const ETCD_REACHABLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two attempts to reach etcd.
const ETCD_RETRY_PERIOD: Duration = Duration::from_millis(500);
/// Period in which etcd's members are asked for their version, which decides if their progress notifications are
/// trusted.
const ETCD_PROBE_PERIOD: Duration = Duration::from_secs(30);
/// Maximum time that the embedded store may take at the end to write what it has accepted.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// An open backend, and the tasks that run for it.
#[derive(Debug)]
pub(super) struct OpenBackend {
    /// The backend, which stores read and write.
    pub(super) backend: Arc<dyn Backend>,
    /// The embedded store if the backend is one; it must be closed.
    pub(super) embedded: Option<Arc<Embedded>>,
    /// The thread that commits to the database; `None` if there is none to wait for.
    commits: Option<JoinHandle<()>>,
    tasks: JoinSet<()>,
    end: CancellationToken,
}

/// Opens the backend that the flags select.
///
/// # Errors
/// The database cannot be opened, or etcd not be reached.
pub(super) async fn open(
    flags: &ServeFlags,
    data_dir: &Path,
    clock: &Clock,
) -> Result<OpenBackend, StartError> {
    match flags.backend() {
        StorageBackend::Memory => {
            let embedded = Embedded::in_memory_with_quota(clock.clone(), flags.quota_bytes());
            Ok(OpenBackend::embedded(Arc::new(embedded), None))
        }
        StorageBackend::Embedded => {
            let (path, clock) = (data_dir.join(DATABASE), clock.clone());
            let opened = tokio::task::spawn_blocking(move || Embedded::open(&path, clock)).await;
            let opened = opened.map_err(|error| {
                let advice = "look at the log; restore the data directory from a backup";
                StartError::new("open the database", error, advice)
            })?;
            let (embedded, commit_loop) = opened.map_err(StartError::line)?;
            let commit_loop = commit_loop.with_quota(flags.quota_bytes());
            let commits = std::thread::Builder::new()
                .name("commit".to_owned())
                .spawn(move || commit_loop.run())
                .map_err(|error| {
                    StartError::new(
                        "start a thread",
                        error,
                        "raise the limit of threads (ulimit -u)",
                    )
                })?;
            Ok(OpenBackend::embedded(Arc::new(embedded), Some(commits)))
        }
        StorageBackend::Etcd3 => {
            let etcd = Arc::new(connect(&flags.etcd, clock).await?);
            Ok(OpenBackend::etcd(etcd, clock.clone()))
        }
    }
}

/// Connects to etcd, and retries while it is unreachable. Errors that no retry can cure are returned at once.
async fn connect(flags: &EtcdFlags, clock: &Clock) -> Result<Etcd, StartError> {
    let tls = TlsFiles {
        ca: flags.etcd_cafile.clone(),
        cert: flags.etcd_certfile.clone(),
        key: flags.etcd_keyfile.clone(),
    };
    let deadline = clock.now() + ETCD_REACHABLE_TIMEOUT;
    let mut config = Config::new(flags.etcd_servers.clone(), tls);
    config.connect_timeout = config.connect_timeout.min(ETCD_REACHABLE_TIMEOUT);
    loop {
        match Etcd::connect(config.clone(), clock.clone()).await {
            Ok(etcd) => return Ok(etcd),
            Err(error @ (BackendError::Unavailable(_) | BackendError::Timeout(_))) => {
                if clock.now() >= deadline {
                    return Err(StartError::line(format!(
                        "{error} (tried for {ETCD_REACHABLE_TIMEOUT:?}); check that etcd runs, and --etcd-servers"
                    )));
                }
                tracing::info!(%error, "trying again");
                clock.sleep(ETCD_RETRY_PERIOD).await;
            }
            Err(error) => {
                return Err(StartError::line(format!(
                    "{error}; check the flags --etcd-*"
                )));
            }
        }
    }
}

impl OpenBackend {
    /// Returns a backend without tasks.
    pub(super) fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            embedded: None,
            commits: None,
            tasks: JoinSet::new(),
            end: CancellationToken::new(),
        }
    }

    fn embedded(embedded: Arc<Embedded>, commits: Option<JoinHandle<()>>) -> Self {
        let mut open = Self::new(Arc::clone(&embedded) as Arc<dyn Backend>);
        let (store, end) = (Arc::clone(&embedded), open.end.clone());
        open.tasks.spawn(async move {
            store.run_leases(end.cancelled_owned()).await;
        });
        let (store, end) = (Arc::clone(&embedded), open.end.clone());
        open.tasks.spawn(async move {
            store.run_recovery(end.cancelled_owned()).await;
        });
        open.embedded = Some(embedded);
        open.commits = commits;
        open
    }

    fn etcd(etcd: Arc<Etcd>, clock: Clock) -> Self {
        let mut open = Self::new(Arc::clone(&etcd) as Arc<dyn Backend>);
        let end = open.end.clone();
        open.tasks.spawn(async move {
            let probes = async {
                loop {
                    clock.sleep(ETCD_PROBE_PERIOD).await;
                    if let Err(error) = etcd.probe().await {
                        tracing::info!(%error, "etcd does not answer");
                    }
                }
            };
            end.run_until_cancelled(probes).await.unwrap_or(())
        });
        open
    }

    /// Closes the store once everything that it accepted is written.
    pub(super) async fn close(mut self, clock: &Clock) {
        self.end.cancel();
        if let Some(embedded) = self.embedded {
            embedded.close();
        }
        let Some(commits) = self.commits else {
            return;
        };
        let joined = tokio::task::spawn_blocking(move || commits.join());
        match clock.timeout(CLOSE_TIMEOUT, joined).await {
            Ok(Ok(Ok(()))) => {}
            Ok(_) => tracing::error!("the thread that commits panicked"),
            Err(_) => {
                tracing::error!("the store did not close in time; nothing acknowledged is lost")
            }
        }
        self.tasks.shutdown().await;
    }
}

/// Adds health checks that fail when the embedded store cannot be written and when its quota is reached.
pub(super) fn add_store_checks(embedded: &Arc<Embedded>, health: &mut Health) {
    let store = Arc::clone(embedded);
    let writable = check(move || store.refusal().map_or(Ok(()), Err));
    health.add("storage-writable", Scope::Serving, writable);
    let store = Arc::clone(embedded);
    let below_quota = check(move || match store.lacks_space() {
        true => Err(BackendError::NoSpace.to_string()),
        false => Ok(()),
    });
    // Not part of readiness: a load balancer would send clients elsewhere, and they could not delete anything.
    health.add("storage-quota", Scope::Advice, below_quota);
}

/// Returns the health check that the store answers within a time.
pub(super) fn store_check(
    backend: &Arc<dyn Backend>,
    flags: &EtcdFlags,
    at_most: Duration,
    clock: &Clock,
) -> Check {
    let probe = etcd3::Health::new(Arc::clone(backend), &flags.etcd_prefix, clock.clone());
    let probe = Arc::new(probe);
    let clock = clock.clone();
    Arc::new(move || {
        let (probe, clock) = (Arc::clone(&probe), clock.clone());
        Box::pin(async move {
            match clock.timeout(at_most, probe.check()).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(format!("etcd client: {error}")),
                Err(_) => Err("etcd client: context deadline exceeded".to_owned()),
            }
        })
    })
}
