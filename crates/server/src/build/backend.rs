//! Opens the backend that the flags select, with its tasks: for the embedded store a loop that commits, the expiry of
//! leases, the recovery after failed writes and the search for damage; for etcd a task that checks the versions of its
//! members.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::copy::MARKER_KEY;
use ringwatch::storage::backend::embedded::{
    CommitLoop, Embedded, FILE_NAME, UNFINISHED_COPY_NAME,
};
use ringwatch::storage::backend::etcd::{Config, Etcd, TlsFiles};
use ringwatch::storage::backend::{Backend, BackendError, RangeRequest};
use ringwatch::storage::etcd3;
use ringwatch_endpoints::health::{Check, Health, Scope, check};
use ringwatch_resources::built_in;
use ringwatch_spans::inject;
use ringwatch_tls::error::StartError;

use super::store_snapshot::StoreSnapshots;
use super::tasks::Tasks;
use super::traced_backend::TracedBackend;
use super::unsynced_file::UnsyncedFile;
use crate::config::flags::{EtcdFlags, ServeFlags, StorageBackend};

/// Maximum time until etcd is reached at start.
const ETCD_REACHABLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two attempts to reach etcd.
const ETCD_RETRY_PERIOD: Duration = Duration::from_millis(500);
/// Period in which etcd's members are asked for their version, which decides if their progress notifications are
/// trusted.
const ETCD_PROBE_PERIOD: Duration = Duration::from_secs(30);

/// An open backend.
#[derive(Debug)]
pub(crate) struct OpenBackend {
    /// The backend, which stores read and write.
    pub(crate) backend: Arc<dyn Backend>,
    /// The embedded store if the backend is one; it must be closed.
    pub(crate) embedded: Option<Arc<Embedded>>,
}

/// The tasks of an open backend, without which it does not work.
#[derive(Debug, Default)]
pub(crate) struct BackendTasks {
    /// The loop that commits to the database, which blocks a thread; `None` if there is none.
    pub(crate) commit_loop: Option<CommitLoop>,
    /// The others.
    pub(crate) tasks: Tasks,
}

/// Opens the backend that the flags select, unless one is given. The history of an embedded store is bounded by the
/// memory budget.
///
/// # Errors
/// The database cannot be opened, or etcd not be reached.
pub(crate) async fn open(
    flags: &ServeFlags,
    given: Option<Arc<dyn Backend>>,
    data_dir: &Path,
    memory: &Ledger,
    clock: &Clock,
) -> Result<(OpenBackend, BackendTasks), StartError> {
    if let Some(backend) = given {
        return Ok((OpenBackend::new(backend), BackendTasks::default()));
    }
    match flags.backend() {
        StorageBackend::Memory => {
            let embedded =
                Embedded::in_memory_with_limits(clock.clone(), flags.quota_bytes(), memory);
            Ok(OpenBackend::embedded(Arc::new(embedded), None))
        }
        StorageBackend::Embedded => {
            refuse_unfinished_file(data_dir)?;
            let (path, clock) = (data_dir.join(FILE_NAME), clock.clone());
            let is_synced = !flags.etcd.unsafe_no_fsync;
            let opened = tokio::task::spawn_blocking(move || match is_synced {
                true => Embedded::open(&path, clock),
                false => Embedded::open_on(&path, UnsyncedFile::open(&path)?, clock),
            });
            let opened = opened.await;
            let opened = opened.map_err(|error| {
                let advice = "look at the log; restore the data directory from a backup";
                StartError::new("open the database", error, advice)
            })?;
            let (embedded, commit_loop) = opened.map_err(StartError::line)?;
            let commit_loop = commit_loop.with_limits(flags.quota_bytes(), memory);
            Ok(OpenBackend::embedded(Arc::new(embedded), Some(commit_loop)))
        }
        StorageBackend::Etcd3 => {
            let etcd = Arc::new(connect(&flags.etcd, &flags.etcd.etcd_servers, clock).await?);
            refuse_unfinished_copy(&etcd).await?;
            Ok(OpenBackend::etcd(etcd, flags.has_spans(), clock.clone()))
        }
    }
}

/// A backend of some resources alone.
#[derive(Debug)]
pub(crate) struct OpenOverride {
    /// The URLs of its servers.
    servers: Vec<String>,
    /// The group and plural of each of these resources.
    pub(crate) types: Vec<(String, String)>,
    /// The backend.
    pub(crate) open: OpenBackend,
    /// Its tasks.
    pub(crate) tasks: BackendTasks,
}

/// Opens the backends of the resources that the flags keep in other etcds: one for each set of servers, in the order of
/// the flags. Only built-in resources can be kept elsewhere.
///
/// # Errors
/// An etcd cannot be reached.
pub(crate) async fn open_overrides(
    flags: &ServeFlags,
    clock: &Clock,
) -> Result<Vec<OpenOverride>, StartError> {
    let built_in: HashSet<(String, String)> = built_in()
        .iter()
        .map(|it| (it.group_version.group.clone(), it.plural.clone()))
        .collect();
    let mut opened: Vec<OpenOverride> = Vec::new();
    for other in &flags.etcd.etcd_servers_overrides {
        let named = (other.group.clone(), other.plural.clone());
        let known = built_in.contains(&named).then_some(named);
        let same = opened.iter_mut().find(|it| it.servers == other.servers);
        if let Some(same) = same {
            same.types.extend(known);
            continue;
        }
        let etcd = Arc::new(connect(&flags.etcd, &other.servers, clock).await?);
        refuse_unfinished_copy(&etcd).await?;
        let (open, tasks) = OpenBackend::etcd(etcd, flags.has_spans(), clock.clone());
        opened.push(OpenOverride {
            servers: other.servers.clone(),
            types: known.into_iter().collect(),
            open,
            tasks,
        });
    }
    Ok(opened)
}

/// Connects to etcd, and retries while it is unreachable. Errors that no retry can cure are returned at once.
async fn connect(flags: &EtcdFlags, servers: &[String], clock: &Clock) -> Result<Etcd, StartError> {
    let tls = TlsFiles {
        ca: flags.etcd_cafile.clone(),
        cert: flags.etcd_certfile.clone(),
        key: flags.etcd_keyfile.clone(),
    };
    let deadline = clock.now() + ETCD_REACHABLE_TIMEOUT;
    let mut config = Config::new(servers.to_vec(), tls);
    config.connect_timeout = config.connect_timeout.min(ETCD_REACHABLE_TIMEOUT);
    // As in kube-apiserver, the trace of a caller goes on even if this server exports no spans.
    config.add_metadata = Some(|metadata| inject(metadata.as_mut()));
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

/// Refuses an etcd into which a copy is not finished: it lacks keys, and its revisions mean nothing yet.
async fn refuse_unfinished_copy(etcd: &Etcd) -> Result<(), StartError> {
    let marker = etcd.range(RangeRequest::key(MARKER_KEY)).await;
    match marker.map_err(StartError::line)?.count {
        0 => Ok(()),
        _ => Err(StartError::line(
            "the etcd is an unfinished copy; finish it with ringwatch store copy, or name another with --etcd-servers or --etcd-servers-overrides",
        )),
    }
}

/// Refuses to make a store in a data directory with an unfinished copy: the cluster would begin empty, and the copy
/// could not be finished any more.
fn refuse_unfinished_file(data_dir: &Path) -> Result<(), StartError> {
    let unfinished = data_dir.join(UNFINISHED_COPY_NAME);
    let exists = |path: &Path| {
        let advice = "check the permissions of the data directory";
        let found = path.try_exists();
        found
            .map_err(|error| StartError::new(format!("look for {}", path.display()), error, advice))
    };
    if exists(&data_dir.join(FILE_NAME))? || !exists(&unfinished)? {
        return Ok(());
    }
    Err(StartError::line(format!(
        "{} is an unfinished copy, and there is no store; finish it by the same ringwatch store copy without --prepare, or remove the file to begin with an empty store",
        unfinished.display()
    )))
}

impl OpenBackend {
    /// Returns a backend that needs no tasks, or whose owner runs them.
    fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            embedded: None,
        }
    }

    fn embedded(store: Arc<Embedded>, commit_loop: Option<CommitLoop>) -> (Self, BackendTasks) {
        let mut tasks = Tasks::default();
        let embedded = Arc::clone(&store);
        tasks.serving_to_its_end("leases", async move |end| {
            embedded.run_leases(end.cancelled_owned()).await;
        });
        let embedded = Arc::clone(&store);
        tasks.serving_to_its_end("recovery of the store", async move |end| {
            embedded.run_recovery(end.cancelled_owned()).await;
        });
        let embedded = Arc::clone(&store);
        tasks.serving_to_its_end("search for damage", async move |end| {
            embedded.run_verification(end.cancelled_owned()).await;
        });
        let open = Self {
            backend: Arc::clone(&store) as Arc<dyn Backend>,
            embedded: Some(store),
        };
        (open, BackendTasks { commit_loop, tasks })
    }

    fn etcd(etcd: Arc<Etcd>, has_spans: bool, clock: Clock) -> (Self, BackendTasks) {
        let mut backend = Arc::clone(&etcd) as Arc<dyn Backend>;
        if has_spans {
            backend = Arc::new(TracedBackend::new(backend));
        }
        let mut tasks = Tasks::default();
        tasks.serving("versions of etcd", async move {
            loop {
                clock.sleep(ETCD_PROBE_PERIOD).await;
                if let Err(error) = etcd.probe().await {
                    tracing::info!(%error, "etcd does not answer");
                }
            }
        });
        let tasks = BackendTasks {
            commit_loop: None,
            tasks,
        };
        (Self::new(backend), tasks)
    }

    /// Returns the maker of snapshots of the embedded store; `None` if the backend is another one.
    pub(crate) fn snapshots(&self, clock: &Clock) -> Option<StoreSnapshots> {
        let embedded = self.embedded.as_ref()?;
        Some(StoreSnapshots::new(Arc::clone(embedded), clock.clone()))
    }
}

/// Returns the compactor of a backend, with the interval of the flags; at 0 it only follows what others compact.
pub(crate) fn compactor(
    backend: &Arc<dyn Backend>,
    flags: &EtcdFlags,
    metrics: &etcd3::CompactionMetrics,
    clock: &Clock,
) -> etcd3::Compactor {
    let interval = flags.etcd_compaction_interval;
    let interval = (!interval.is_zero()).then_some(interval);
    etcd3::Compactor::new(Arc::clone(backend), interval, clock.clone()).counted(metrics)
}

/// Adds health checks that fail when the embedded store cannot be written and when its quota is reached.
pub(crate) fn add_store_checks(embedded: &Arc<Embedded>, health: &mut Health) {
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
pub(crate) fn store_check(
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
