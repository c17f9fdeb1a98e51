//! A store, a feed of it, and time, which passes faster.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::cacher::{
    CacheDelegator, CacheMetrics, Feed, Reflector, TypeConfig, WindowLimits,
};

use crate::store::{Source, Store};

/// The real time between two moves of the clock, and the time by which it moves: sixty times as
/// fast as real time, a minute's bookmarks in a second.
const TICK: Duration = Duration::from_millis(5);
const TICK_MOVES: Duration = Duration::from_millis(300);

/// The most events that a window keeps: clients that stall fall out of them.
const WINDOW_EVENTS: usize = 2_000;

/// Everything that the tasks share.
pub(crate) struct World {
    pub(crate) store: Arc<Store>,
    pub(crate) feed: Feed,
    pub(crate) pods: Arc<CacheDelegator>,
    pub(crate) seen: Seen,
    /// The number of clients that have received everything.
    pub(crate) complete: AtomicUsize,
    /// True while the watches are being drained.
    pub(crate) draining: AtomicBool,
    pub(crate) clock: Clock,
    metrics: Registry,
}

/// Counts of the things that happened.
#[derive(Default)]
pub(crate) struct Seen(Mutex<BTreeMap<&'static str, usize>>);

impl Seen {
    pub(crate) fn note(&self, what: &'static str) {
        *self.lock().entry(what).or_default() += 1;
    }

    /// Returns all of it, once it is over.
    pub(crate) fn all(&self) -> BTreeMap<&'static str, usize> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    pub(crate) fn new() -> (Arc<Self>, Reflector) {
        let (store, clock) = (Arc::new(Store::new()), Clock::manual(Timestamp::UNIX_EPOCH));
        let source = Source(Arc::clone(&store));
        let mut registry = Registry::default();
        let metrics = CacheMetrics::register(&mut registry);
        let follow = Arc::new(source.clone());
        let (feed, reflector) = Feed::new(follow, clock.clone(), metrics, Ledger::unlimited());
        let pods = feed.add_type(TypeConfig::new("", "pods").with_window(WindowLimits {
            events_max: WINDOW_EVENTS,
            ..WindowLimits::default()
        }));
        let world = Self {
            store,
            feed,
            pods: Arc::new(CacheDelegator::new(pods, Arc::new(source))),
            seen: Seen::default(),
            complete: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            clock,
            metrics: registry,
        };
        (Arc::new(world), reflector)
    }

    /// Lets time pass.
    pub(crate) async fn pass_time(self: Arc<Self>) {
        loop {
            tokio::time::sleep(TICK).await;
            self.clock.advance(TICK_MOVES);
        }
    }

    /// Returns the value of one of the pods' metrics.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let mut text = String::new();
        encode(&mut text, &self.metrics).expect("a string takes it");
        let line = text
            .lines()
            .find(|it| it.starts_with(&format!("{name}{{")))
            .unwrap_or_else(|| panic!("{name} is not there"));
        let value = line.rsplit(' ').next().and_then(|it| it.parse().ok());
        value.unwrap_or_else(|| panic!("{line}"))
    }
}
