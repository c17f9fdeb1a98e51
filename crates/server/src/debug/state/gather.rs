//! Gathers the documents from the parts of the server that know their figures.

use std::sync::Arc;

use jiff::Timestamp;
use ringwatch::budget::{Account, Ledger};
use ringwatch::clock::{Clock, Instant};
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_filters::Limits;
use ringwatch_flowcontrol::Fairness;
use ringwatch_observe::open_watches::OpenWatches;
use ringwatch_observe::running_requests::RunningRequests;
use ringwatch_observe::status::findings::findings;
use ringwatch_observe::status::thresholds::{Thresholds, certificate_level};
use ringwatch_observe::status::{
    AccountState, CertificateState, MemoryState, ServerState, StoreKind, Watcher, WatcherList,
    type_name,
};
use ringwatch_observe::webhook_calls::WebhookCalls;
use ringwatch_tls::served_certificates::Expiry;

use super::caches::CachesSource;
use super::lagging::{Lagging, furthest_first};
use super::requests::{client, level, requests, webhook};
use super::types::types;
use crate::config::flags::{ServeFlags, StorageBackend};
use crate::debug::resident_bytes;

/// Maximum number of watchers and of requests in the state.
const SLOWEST_MAX: usize = 20;

/// Maximum number of requests of which equal ones are shown as one.
const GROUPED_MAX: usize = 100;

/// Maximum number of clients in the state, each with a verb and a resource.
const CLIENTS_MAX: usize = 30;

/// Maximum number of webhooks in the state.
const WEBHOOKS_MAX: usize = 30;

/// The age that a state must have for the next to take its place in what rates are made of, and the age from which on
/// it is too old for that, in seconds.
const RATES_SECONDS_MIN: f64 = 0.9;
const RATES_SECONDS_MAX: f64 = 30.0;

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
    /// The calls of webhooks.
    pub(crate) webhooks: WebhookCalls,
    /// The certificates of the server.
    pub(crate) credentials: CurrentCredentials,
    /// The state that rates are made of; `None` if none was asked for yet.
    before: Option<ServerState>,
    /// The time at which the server was built.
    pub(crate) started: Instant,
    /// The clock of the server.
    pub(crate) clock: Clock,
}

/// The parts of a server or relay whose figures are shown.
pub(crate) struct StatusInputs<'parts> {
    /// The caches.
    pub(crate) caches: CachesSource,
    /// The limits on requests, which know those that run.
    pub(crate) limits: &'parts Limits,
    /// The memory budget.
    pub(crate) ledger: &'parts Ledger,
    /// The watches of clients.
    pub(crate) watches: &'parts OpenWatches,
    /// The calls of webhooks.
    pub(crate) webhooks: &'parts WebhookCalls,
    /// The certificates of the server.
    pub(crate) credentials: &'parts CurrentCredentials,
}

impl Sources {
    /// Collects the parts of a server or a relay that has these flags.
    pub(crate) fn new(flags: &ServeFlags, inputs: StatusInputs<'_>, clock: &Clock) -> Self {
        let StatusInputs { caches, limits, .. } = inputs;
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
            ledger: inputs.ledger.clone(),
            watches: inputs.watches.clone(),
            requests: limits.running.clone(),
            fairness: limits.fairness.clone(),
            webhooks: inputs.webhooks.clone(),
            credentials: inputs.credentials.clone(),
            before: None,
            started: clock.now(),
            clock: clock.clone(),
        }
    }

    /// Returns the state of the server.
    pub(super) async fn state(&mut self) -> ServerState {
        let feed = self.caches.progress(&self.clock).await;
        let mut watches = self.lagging(None);
        let types = types(&self.caches.figures(), &watches);
        let now = self.clock.now();
        furthest_first(&mut watches, SLOWEST_MAX);
        let shown = self.requests.slowest(GROUPED_MAX, now);
        let clients = self.requests.busiest(CLIENTS_MAX, now);
        let webhooks = self.webhooks.figures(now).into_iter();
        let levels = self.fairness.as_ref().map(|it| it.levels());
        let mut state = ServerState {
            time: self.clock.wall().to_string(),
            name: self.name.to_owned(),
            version: self.version.clone(),
            uptime_seconds: now.duration_since(self.started).as_secs_f64(),
            store: self.store,
            feed,
            memory: self.memory(),
            types,
            fairness: levels.into_iter().flatten().map(level).collect(),
            requests: requests(shown, SLOWEST_MAX),
            clients: clients.into_iter().map(client).collect(),
            webhooks: webhooks.map(webhook).take(WEBHOOKS_MAX).collect(),
            certificates: self.certificates(),
            slowest: watches.iter().map(|it| it.shown(now)).collect(),
            thresholds: Thresholds::default(),
            findings: Vec::new(),
        };
        self.find(&mut state);
        state
    }

    /// Adds to a state what stands out of it.
    fn find(&mut self, state: &mut ServerState) {
        let passed = |it: &ServerState| state.uptime_seconds - it.uptime_seconds;
        let before = self.before.take();
        let before = before.filter(|it| passed(it) <= RATES_SECONDS_MAX);
        let is_new = before
            .as_ref()
            .is_some_and(|it| passed(it) < RATES_SECONDS_MIN);
        state.findings = findings(state, before.as_ref());
        self.before = match is_new {
            true => before,
            false => Some(state.clone()),
        };
    }

    fn certificates(&self) -> Vec<CertificateState> {
        let now = self.clock.wall();
        let expiries = &self.credentials.borrow().serving_expiries;
        let Some(expiry) = Expiry::most_urgent(expiries, now.as_second()) else {
            return Vec::new();
        };
        let time = Timestamp::from_second;
        let (Ok(until), Ok(replace_by)) =
            (time(expiry.until_seconds), time(expiry.replace_by_seconds))
        else {
            return Vec::new();
        };
        let seconds_left = until.duration_since(now).as_secs_f64();
        let replaced_before = until.duration_since(replace_by).as_secs_f64();
        vec![CertificateState {
            name: "serving certificate".to_owned(),
            expires: until.to_string(),
            seconds_left,
            level: certificate_level(seconds_left, replaced_before),
        }]
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
            resident_bytes: resident_bytes(),
            accounts: accounts.to_vec(),
        }
    }
}
