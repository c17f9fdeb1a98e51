//! Gathers the documents from the parts of the server that know their figures.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::budget::{Account, Ledger};
use ringwatch::clock::{Clock, Instant};
use ringwatch::storage::cacher::{Feed, TypeFigures};
use ringwatch_apiserver::filters::Limits;
use ringwatch_apiserver::open_watches::{OpenWatch, OpenWatches};
use ringwatch_apiserver::running_requests::{RunningRequests, ShownRequest};
use ringwatch_flowcontrol::Fairness;
use ringwatch_flowcontrol::fairness::LevelFigures;
use ringwatch_relay::Caches;
use ringwatch_state::{
    AccountState, FeedState, LevelState, MemoryState, RequestState, State, StoreKind, TypeState,
    WaitingReads, Watcher, WatcherCounts, WatcherList, WindowState,
};

use crate::flags::{ServeFlags, StorageBackend};
use crate::process;

/// Maximum number of watchers and of requests in the state.
const SLOWEST_MAX: usize = 20;

/// Maximum time that a document waits for the newest revision of the store.
const STORE_TIMEOUT: Duration = Duration::from_millis(500);

/// The parts of the server that know its figures.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The name of the program.
    pub(crate) name: &'static str,
    /// The version of Kubernetes that it serves.
    pub(crate) version: String,
    /// The store behind the caches.
    pub(crate) store: StoreKind,
    /// The caches.
    pub(crate) caches: CachesSource,
    /// The memory budget.
    pub(crate) ledger: Ledger,
    /// The watches of clients.
    pub(crate) watches: OpenWatches,
    /// The requests that run.
    pub(crate) requests: RunningRequests,
    /// Priority and fairness; `None` if it is off.
    pub(crate) fairness: Option<Arc<Fairness>>,
    /// The time at which the server was built.
    pub(crate) started: Instant,
    /// The clock of the server.
    pub(crate) clock: Clock,
}

/// The caches whose figures are shown.
#[derive(Debug)]
pub(crate) enum CachesSource {
    /// The one feed of a server.
    Feed {
        /// The feed.
        feed: Feed,
        /// A revision of the store that the caches had not reached when they were last looked at, and the time of that.
        behind: Option<(u64, Instant)>,
    },
    /// The feeds of a relay, one for each type.
    Relay(Arc<Caches>),
}

/// A watch with its lag, as both are sorted by it.
struct Lagging {
    watch: Arc<OpenWatch>,
    behind: Option<u64>,
    parked: bool,
}

impl Sources {
    /// Collects the parts of a server or a relay that has these flags, caches and limits.
    pub(crate) fn new(
        flags: &ServeFlags,
        caches: CachesSource,
        limits: &Limits,
        ledger: &Ledger,
        clock: &Clock,
    ) -> Self {
        let (name, store) = match &caches {
            CachesSource::Relay(_) => ("ringwatch relay", StoreKind::Upstream),
            CachesSource::Feed { .. } if flags.backend() == StorageBackend::Etcd3 => {
                ("ringwatch", StoreKind::Etcd)
            }
            CachesSource::Feed { .. } => ("ringwatch", StoreKind::Embedded),
        };
        Self {
            name,
            version: flags.version.version().git_version,
            store,
            caches,
            ledger: ledger.clone(),
            watches: OpenWatches::default(),
            requests: limits.running.clone(),
            fairness: limits.fairness.clone(),
            started: clock.now(),
            clock: clock.clone(),
        }
    }

    /// Returns the state of the server.
    pub(super) async fn state(&mut self) -> State {
        let feed = self.caches.progress(&self.clock).await;
        let mut watches = self.lagging(None);
        let types = types(&self.caches.figures(), &watches);
        let now = self.clock.now();
        furthest_first(&mut watches, SLOWEST_MAX);
        let requests = self.requests.slowest(SLOWEST_MAX, now);
        let levels = self.fairness.as_ref().map(|it| it.levels());
        State {
            time: self.clock.wall().to_string(),
            name: self.name.to_owned(),
            version: self.version.clone(),
            uptime_seconds: seconds(now, self.started),
            store: self.store,
            feed,
            memory: self.memory(),
            types,
            fairness: levels.into_iter().flatten().map(level).collect(),
            requests: requests.into_iter().map(request).collect(),
            slowest: watches.iter().map(|it| it.shown(now)).collect(),
        }
    }

    /// Returns the watchers of a type, or of all, those that are furthest behind first.
    pub(super) fn watchers(&self, of_type: Option<&str>, limit: usize) -> WatcherList {
        let now = self.clock.now();
        let mut watches = self.lagging(of_type);
        let total = watches.len() as u64;
        furthest_first(&mut watches, limit);
        WatcherList {
            total,
            items: watches.iter().map(|it| it.shown(now)).collect(),
        }
    }

    /// Returns the watcher of a number; `None` if it has ended.
    pub(super) fn watcher(&self, id: u64) -> Option<Watcher> {
        let watch = self.watches.get(id)?;
        Some(Lagging::new(watch).shown(self.clock.now()))
    }

    fn lagging(&self, of_type: Option<&str>) -> Vec<Lagging> {
        let all = self.watches.all().into_iter();
        let wanted =
            all.filter(|it| of_type.is_none_or(|wanted| wanted == type_name(it.of_type())));
        wanted.map(Lagging::new).collect()
    }

    fn memory(&self) -> MemoryState {
        let accounts = Account::ALL.map(|account| AccountState {
            name: account.name().to_owned(),
            bytes: self.ledger.spent(account),
        });
        MemoryState {
            budget_bytes: Some(self.ledger.limit()).filter(|limit| *limit < u64::MAX),
            resident_bytes: process::resident_bytes(),
            accounts: accounts.to_vec(),
        }
    }
}

impl CachesSource {
    /// Returns the caches of a server.
    pub(crate) fn feed(feed: &Feed) -> Self {
        Self::Feed {
            feed: feed.clone(),
            behind: None,
        }
    }

    /// Returns how far the caches have come. The store is asked for its newest revision.
    async fn progress(&mut self, clock: &Clock) -> FeedState {
        let (feed, behind) = match self {
            Self::Feed { feed, behind } => (feed, behind),
            Self::Relay(caches) => {
                return FeedState {
                    revision: None,
                    store_revision: None,
                    lag_seconds: Some(caches.longest_away().as_secs_f64()),
                };
            }
        };
        let asked = clock.timeout(STORE_TIMEOUT, feed.store_revision()).await;
        let store_revision = asked.ok().and_then(Result::ok);
        let (revision, now) = (feed.revision(), clock.now());
        *behind = behind
            .filter(|(wanted, _)| *wanted > revision)
            .or_else(|| Some((store_revision.filter(|it| *it > revision)?, now)));
        let lag = behind.map(|(_, since)| seconds(now, since));
        FeedState {
            revision: Some(revision),
            store_revision,
            // A store that does not answer may be ahead.
            lag_seconds: lag.or_else(|| store_revision.map(|_| 0.0)),
        }
    }

    fn figures(&self) -> Vec<TypeFigures> {
        match self {
            Self::Feed { feed, .. } => feed.figures(),
            Self::Relay(caches) => caches.figures(),
        }
    }
}

impl Lagging {
    fn new(watch: Arc<OpenWatch>) -> Self {
        let lag = watch.lag();
        Self {
            watch,
            behind: lag.map(|it| it.events),
            parked: lag.is_some_and(|it| it.parked),
        }
    }

    fn shown(&self, now: Instant) -> Watcher {
        let watch = &self.watch;
        Watcher {
            id: watch.id.to_string(),
            type_name: type_name(watch.of_type()),
            user: watch.user.to_string(),
            user_agent: watch.user_agent.to_string(),
            address: None,
            namespace: Some(watch.namespace.to_string()).filter(|it| !it.is_empty()),
            selector: watch.selector.to_string(),
            kind: watch.kind.name().to_owned(),
            age_seconds: seconds(now, watch.since),
            sent: watch.sent(),
            revision: watch.revision(),
            behind: self.behind,
            parked: self.parked,
        }
    }
}

/// Keeps the watches that are furthest behind, in that order.
fn furthest_first(watches: &mut Vec<Lagging>, most: usize) {
    let rank = |it: &Lagging| (Reverse((it.behind, it.parked)), it.watch.id);
    if watches.len() > most {
        watches.select_nth_unstable_by_key(most, rank);
        watches.truncate(most);
    }
    watches.sort_unstable_by_key(rank);
}

/// Returns all types that are cached or watched, by their names.
fn types(figures: &[TypeFigures], watches: &[Lagging]) -> Vec<TypeState> {
    let mut counts: BTreeMap<(&str, &str), WatcherCounts> = BTreeMap::new();
    for it in watches {
        let of_type = counts.entry(it.watch.of_type()).or_default();
        of_type.total += 1;
        if let Some(of_kind) = of_type.of_kind(it.watch.kind.name()) {
            *of_kind += 1;
        }
        of_type.parked += u64::from(it.parked);
        of_type.behind_max = of_type.behind_max.max(it.behind.unwrap_or_default());
    }
    let mut types = Vec::with_capacity(figures.len());
    for cached in figures {
        let mut watchers = counts
            .remove(&(&*cached.group, &*cached.resource))
            .unwrap_or_default();
        // A watch may have begun or ended since the others were counted.
        watchers.internal = cached.watchers.saturating_sub(watchers.total);
        types.push(cached_type(cached, watchers));
    }
    let uncached = counts.into_iter();
    types.extend(uncached.map(|(name, watchers)| uncached_type(name, watchers)));
    types.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    types
}

fn cached_type(figures: &TypeFigures, watchers: WatcherCounts) -> TypeState {
    let (window, limits) = (&figures.window, &figures.window.limits);
    TypeState {
        name: type_name((&figures.group, &figures.resource)),
        objects: Some(figures.objects as u64),
        bytes: Some(figures.object_bytes),
        window: Some(WindowState {
            events: window.events,
            spare: window.spare,
            capacity: limits.events_max as u64,
            bytes: Some(window.bytes),
            bytes_max: limits.bytes_max as u64,
            oldest_seconds: window.oldest.map(|it| it.as_secs_f64()),
        }),
        changes: Some(figures.changes),
        watchers,
        reads: WaitingReads {
            waiting: figures.waiting as u64,
            longest_seconds: figures.longest_wait.as_secs_f64(),
        },
        revision: Some(figures.revision),
        ready: figures.ready,
    }
}

fn uncached_type(name: (&str, &str), watchers: WatcherCounts) -> TypeState {
    TypeState {
        name: type_name(name),
        objects: None,
        bytes: None,
        window: None,
        changes: None,
        watchers,
        reads: WaitingReads::default(),
        revision: None,
        ready: false,
    }
}

/// Returns the name of a type of a group and a plural resource, such as `pods` or `deployments.apps`.
fn type_name((group, resource): (&str, &str)) -> String {
    match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    }
}

fn level(figures: LevelFigures) -> LevelState {
    LevelState {
        level: figures.name,
        seats: figures.seats.map(u64::from),
        executing: figures.executing,
        taken: figures.taken,
        waiting: figures.waiting,
        rejected: figures.rejected,
    }
}

fn request(shown: ShownRequest) -> RequestState {
    RequestState {
        verb: shown.verb,
        path: shown.path.into(),
        user: shown.user.into(),
        user_agent: shown.user_agent.into(),
        seconds: shown.took.as_secs_f64(),
        running: shown.running,
        code: shown.code.map(|it| it.as_u16()),
    }
}

/// Returns the seconds since a time.
fn seconds(now: Instant, since: Instant) -> f64 {
    now.saturating_duration_since(since).as_secs_f64()
}
