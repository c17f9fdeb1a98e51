//! The metrics of the watch cache, under kube-apiserver's names.

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::dispatch_metrics::{DispatchMetrics, TypeDispatchMetrics};
use super::engine_metrics::{EngineMetrics, TypeEngineMetrics};
use super::type_labels::TypeLabels;
use crate::storage::cacher::config::TypeConfig;

/// The upper bounds of the buckets of waits for a revision, in seconds.
const READ_WAIT_BUCKETS_SECONDS: [f64; 13] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0,
];

/// The upper bounds of the buckets of initializations, in seconds.
const INITIALIZATION_BUCKETS_SECONDS: [f64; 12] = [
    0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// The modulus of the revisions that are shown, so that a float holds them exactly.
const RESOURCE_VERSION_MODULUS: u64 = 1_000_000_000_000_000;

/// The progress of the feed.
#[derive(Clone, Debug, Default)]
struct FeedMetrics {
    /// The revision that all types have reached.
    revision: Gauge,
    /// The time at which the store last reported changes or progress, in seconds since 1970.
    last_batch: Gauge,
    /// 1 if the store is asked for progress, else 0.
    asks_for_progress: Gauge,
}

impl FeedMetrics {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "ringwatch_feed_revision",
            "The revision that all types have reached, modulo 10^15",
            self.revision.clone(),
        );
        registry.register(
            "ringwatch_feed_last_batch_timestamp_seconds",
            "When the store last reported changes or progress",
            self.last_batch.clone(),
        );
        registry.register(
            "ringwatch_feed_asks_for_progress",
            "1 if the store is asked for progress every 15 seconds, so that only a store that hangs is silent for longer; 0 until its changes are followed, and if its answer could not be trusted",
            self.asks_for_progress.clone(),
        );
    }
}

/// The labels of a consistent read: the type, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConsistentReadLabels {
    group: String,
    resource: String,
    success: &'static str,
    fallback: &'static str,
}

/// The labels of a list: the type, and the index that was used, if any.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListLabels {
    group: String,
    resource: String,
    index: String,
}

/// The families of all types.
#[derive(Clone, Debug)]
pub struct CacheMetrics {
    events_received: Family<TypeLabels, Counter>,
    events_dispatched: Family<TypeLabels, Counter>,
    initializations: Family<TypeLabels, Counter>,
    initialization_errors: Family<TypeLabels, Counter>,
    init_events: Family<TypeLabels, Counter>,
    terminated_watchers: Family<TypeLabels, Counter>,
    decode_errors: Family<TypeLabels, Counter>,
    resource_version: Family<TypeLabels, Gauge>,
    initialization_seconds: Family<TypeLabels, Histogram, fn() -> Histogram>,
    feed: FeedMetrics,
    engine: EngineMetrics,
    dispatch: DispatchMetrics,
    read_wait: Family<TypeLabels, Histogram, fn() -> Histogram>,
    consistent_reads: Family<ConsistentReadLabels, Counter>,
    lists: Family<ListLabels, Counter>,
    listed_fetched: Family<ListLabels, Counter>,
    listed_returned: Family<TypeLabels, Counter>,
    sharded_watches: Family<TypeLabels, Gauge>,
    refused_by_shards: Family<TypeLabels, Counter>,
}

/// The metrics of one type.
#[derive(Clone, Debug)]
pub(crate) struct TypeMetrics {
    /// Changes that came from the store.
    pub(crate) events_received: Counter,
    /// Events that were sent to watchers.
    pub(crate) events_dispatched: Counter,
    /// The number of times that the type was listed.
    pub(crate) initializations: Counter,
    /// The number of times that listing the type failed.
    pub(crate) initialization_errors: Counter,
    /// Objects of the initial states of watches.
    pub(crate) init_events: Counter,
    /// Watches that ended because the window has passed them.
    pub(crate) terminated_watchers: Counter,
    /// Stored values that are not objects.
    pub(crate) decode_errors: Counter,
    /// The time for which reads waited for their revision, in seconds.
    pub(crate) read_wait: Histogram,
    /// Lists that were answered from memory without an index.
    lists: Counter,
    /// Objects that such lists looked at.
    listed_fetched: Counter,
    /// The same of lists by an index.
    indexed_lists: Family<ListLabels, Counter>,
    indexed_fetched: Family<ListLabels, Counter>,
    /// Objects that lists from memory returned.
    listed_returned: Counter,
    /// The time that it took until the type could be served, in seconds.
    pub(crate) initialization_seconds: Histogram,
    /// Watchers, channels and the window.
    pub(crate) engine: TypeEngineMetrics,
    /// Metrics of the time that events take on their way through the cache.
    pub(crate) dispatch: TypeDispatchMetrics,
    resource_version: Gauge,
    consistent_reads: Family<ConsistentReadLabels, Counter>,
    /// Watches with a shard selector.
    pub(crate) sharded_watches: Gauge,
    /// Events that were not sent to watches with a shard selector because of it.
    pub(crate) refused_by_shards: Counter,
    labels: TypeLabels,
}

impl Default for CacheMetrics {
    fn default() -> Self {
        Self {
            events_received: Family::default(),
            events_dispatched: Family::default(),
            initializations: Family::default(),
            initialization_errors: Family::default(),
            init_events: Family::default(),
            terminated_watchers: Family::default(),
            decode_errors: Family::default(),
            resource_version: Family::default(),
            initialization_seconds: Family::new_with_constructor(|| {
                Histogram::new(INITIALIZATION_BUCKETS_SECONDS)
            }),
            feed: FeedMetrics::default(),
            engine: EngineMetrics::default(),
            dispatch: DispatchMetrics::default(),
            read_wait: Family::new_with_constructor(|| Histogram::new(READ_WAIT_BUCKETS_SECONDS)),
            consistent_reads: Family::default(),
            lists: Family::default(),
            listed_fetched: Family::default(),
            listed_returned: Family::default(),
            sharded_watches: Family::default(),
            refused_by_shards: Family::default(),
        }
    }
}

impl CacheMetrics {
    /// Creates the families and registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let it = Self::default();
        let mut counter = |name, help, family: &Family<TypeLabels, Counter>| {
            registry.register(name, help, family.clone());
        };
        counter(
            "apiserver_watch_cache_events_received",
            "[ALPHA] Counter of events received in watch cache broken by resource type.",
            &it.events_received,
        );
        counter(
            "apiserver_watch_cache_events_dispatched",
            "[ALPHA] Counter of events dispatched in watch cache broken by resource type.",
            &it.events_dispatched,
        );
        counter(
            "apiserver_watch_cache_initializations",
            "[ALPHA] Counter of watch cache initializations broken by resource type.",
            &it.initializations,
        );
        counter(
            "apiserver_watch_cache_initialization_errors",
            "Times filling the watch cache failed",
            &it.initialization_errors,
        );
        counter(
            "apiserver_init_events",
            "[ALPHA] Counter of init events processed in watch cache broken by resource type.",
            &it.init_events,
        );
        counter(
            "apiserver_terminated_watchers",
            "[ALPHA] Counter of watchers closed due to unresponsiveness broken by resource type.",
            &it.terminated_watchers,
        );
        counter(
            "apiserver_storage_decode_errors",
            "[ALPHA] Number of stored object decode errors split by object type",
            &it.decode_errors,
        );
        counter(
            "apiserver_cache_list_returned_objects",
            "[ALPHA] Number of objects returned for a LIST request from watch cache",
            &it.listed_returned,
        );
        it.register_others(registry);
        it
    }

    /// Registers the families about shards, which kube-apiserver has if its feature gate ShardedListAndWatch is on.
    pub fn register_shards(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_watch_shards_total",
            "[ALPHA] Number of active sharded watch connections broken by resource type.",
            self.sharded_watches.clone(),
        );
        registry.register(
            "apiserver_watch_filtered_events",
            "[ALPHA] Counter of events filtered out by shard selector during watch dispatch, broken by \
             resource type.",
            self.refused_by_shards.clone(),
        );
    }

    fn register_others(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_watch_cache_resource_version",
            "[ALPHA] Current resource version of watch cache broken by resource type. This is \
             truncated to the 15 least significant digits.",
            self.resource_version.clone(),
        );
        registry.register(
            "apiserver_storage_events_received",
            "[BETA] Number of etcd events received split by kind.",
            self.events_received.clone(),
        );
        registry.register(
            "apiserver_watch_cache_initialization_duration_seconds",
            "How long it took until the watch cache could be served",
            self.initialization_seconds.clone(),
        );
        self.feed.register(registry);
        self.engine.register(registry);
        self.dispatch.register(registry);
        registry.register(
            "apiserver_watch_cache_read_wait_seconds",
            "[ALPHA] Histogram of time spent waiting for a watch cache to become fresh.",
            self.read_wait.clone(),
        );
        registry.register(
            "apiserver_watch_cache_consistent_read",
            "[ALPHA] Counter for consistent reads from cache.",
            self.consistent_reads.clone(),
        );
        registry.register(
            "apiserver_cache_list",
            "[ALPHA] Number of LIST requests served from watch cache",
            self.lists.clone(),
        );
        registry.register(
            "apiserver_cache_list_fetched_objects",
            "[ALPHA] Number of objects read from watch cache in the course of serving a LIST request",
            self.listed_fetched.clone(),
        );
    }

    /// Sets the revision that all types have reached, and the time of it.
    pub(crate) fn set_feed(&self, revision: u64, now: Timestamp) {
        self.feed.revision.set(shown(revision));
        self.feed.last_batch.set(now.as_second());
    }

    /// Sets whether the store is asked for progress.
    pub(crate) fn set_asks_for_progress(&self, asks: bool) {
        self.feed.asks_for_progress.set(asks.into());
    }

    /// Removes a type's metrics from `/metrics`.
    pub(crate) fn forget_type(&self, config: &TypeConfig) {
        let (group, resource) = (&config.group, &config.resource);
        let labels = TypeLabels {
            group: group.clone(),
            resource: resource.clone(),
        };
        for family in [
            &self.events_received,
            &self.events_dispatched,
            &self.initializations,
            &self.initialization_errors,
            &self.init_events,
            &self.terminated_watchers,
            &self.decode_errors,
            &self.listed_returned,
            &self.refused_by_shards,
        ] {
            family.remove(&labels);
        }
        self.resource_version.remove(&labels);
        self.sharded_watches.remove(&labels);
        self.initialization_seconds.remove(&labels);
        self.engine.forget_type(&labels);
        self.dispatch.forget_type(&labels);
        self.read_wait.remove(&labels);
        let indexes = config.versioner.schema().indexed().map(index_name);
        for index in indexes.chain([String::new()]) {
            let listed = labels.listed(&index);
            self.lists.remove(&listed);
            self.listed_fetched.remove(&listed);
        }
        for success in ["true", "false"] {
            for fallback in ["true", "false"] {
                self.consistent_reads.remove(&ConsistentReadLabels {
                    group: group.to_owned(),
                    resource: resource.to_owned(),
                    success,
                    fallback,
                });
            }
        }
    }

    /// Returns the metrics of a type.
    pub(crate) fn of_type(&self, group: &str, resource: &str) -> TypeMetrics {
        let labels = TypeLabels {
            group: group.to_owned(),
            resource: resource.to_owned(),
        };
        let listed = labels.listed("");
        TypeMetrics {
            events_received: self.events_received.get_or_create_owned(&labels),
            events_dispatched: self.events_dispatched.get_or_create_owned(&labels),
            initializations: self.initializations.get_or_create_owned(&labels),
            initialization_errors: self.initialization_errors.get_or_create_owned(&labels),
            init_events: self.init_events.get_or_create_owned(&labels),
            terminated_watchers: self.terminated_watchers.get_or_create_owned(&labels),
            decode_errors: self.decode_errors.get_or_create_owned(&labels),
            read_wait: self.read_wait.get_or_create_owned(&labels),
            lists: self.lists.get_or_create_owned(&listed),
            listed_fetched: self.listed_fetched.get_or_create_owned(&listed),
            indexed_lists: self.lists.clone(),
            indexed_fetched: self.listed_fetched.clone(),
            listed_returned: self.listed_returned.get_or_create_owned(&labels),
            resource_version: self.resource_version.get_or_create_owned(&labels),
            initialization_seconds: self.initialization_seconds.get_or_create_owned(&labels),
            engine: self.engine.of_type(&labels),
            dispatch: self.dispatch.of_type(&labels),
            consistent_reads: self.consistent_reads.clone(),
            sharded_watches: self.sharded_watches.get_or_create_owned(&labels),
            refused_by_shards: self.refused_by_shards.get_or_create_owned(&labels),
            labels,
        }
    }
}

impl TypeLabels {
    /// Returns the labels of the type's lists by an index.
    fn listed(&self, index: &str) -> ListLabels {
        ListLabels {
            group: self.group.clone(),
            resource: self.resource.clone(),
            index: index.to_owned(),
        }
    }
}

/// Returns the name that kube-apiserver gives the index of a field (`FieldIndex` of `selection_predicate.go`, 1.36).
fn index_name(field: &str) -> String {
    format!("f:{field}")
}

impl TypeMetrics {
    /// Counts a list that was answered from memory, by the index of a field if it has one.
    pub(crate) fn count_list(&self, indexed_field: Option<&str>, fetched: u64, returned: usize) {
        match indexed_field {
            None => {
                self.lists.inc();
                self.listed_fetched.inc_by(fetched);
            }
            Some(field) => {
                let listed = self.labels.listed(&index_name(field));
                self.indexed_lists.get_or_create(&listed).inc();
                self.indexed_fetched.get_or_create(&listed).inc_by(fetched);
            }
        }
        self.listed_returned.inc_by(returned as u64);
    }

    /// Sets the revision that the type's content has reached.
    pub(crate) fn set_resource_version(&self, revision: u64) {
        self.resource_version.set(shown(revision));
    }

    /// Counts a consistent read: `success` is true if the cache became fresh in time, `fallback` if the store answered
    /// instead.
    pub(crate) fn count_consistent_read(&self, success: bool, fallback: bool) {
        let word = |yes| if yes { "true" } else { "false" };
        let labels = ConsistentReadLabels {
            group: self.labels.group.clone(),
            resource: self.labels.resource.clone(),
            success: word(success),
            fallback: word(fallback),
        };
        self.consistent_reads.get_or_create(&labels).inc();
    }
}

/// Returns a revision as a gauge shows it.
fn shown(revision: u64) -> i64 {
    (revision % RESOURCE_VERSION_MODULUS).cast_signed()
}
