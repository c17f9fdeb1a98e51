//! The metrics of API Priority and Fairness.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use ringwatch::clock::{Clock, Instant};

use super::LevelFigures;

type Number = Gauge<i64, AtomicI64>;
type Waits = Family<WaitLabels, Histogram, fn() -> Histogram>;

/// The metrics of all flow schemas and priority levels.
#[derive(Clone, Debug)]
pub(super) struct FairnessMetrics {
    in_queue: Family<FlowLabels, Number>,
    executing: Family<FlowLabels, Number>,
    seats: Family<FlowLabels, Number>,
    dispatched: Family<FlowLabels, Counter>,
    rejected: Family<RejectionLabels, Counter>,
    waits: Waits,
    nominal_limits: Family<LevelLabels, Number>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlowLabels {
    flow_schema: String,
    priority_level: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RejectionLabels {
    flow_schema: String,
    priority_level: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaitLabels {
    execute: &'static str,
    flow_schema: String,
    priority_level: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LevelLabels {
    priority_level: String,
}

/// The metrics of one schema's requests, with the labels resolved.
#[derive(Debug)]
pub(super) struct SchemaMetrics {
    labels: FlowLabels,
    in_queue: Number,
    executing: Number,
    seats: Number,
    dispatched: Counter,
    all: FairnessMetrics,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rejection {
    /// The queue of its flow is full.
    QueueFull,
    /// No seats are free, and the level has no queue.
    NoSeats,
    /// It has waited for too long.
    TimeOut,
    /// The client has gone.
    Cancelled,
}

impl FairnessMetrics {
    pub(super) fn new() -> Self {
        Self {
            in_queue: Family::default(),
            executing: Family::default(),
            seats: Family::default(),
            dispatched: Family::default(),
            rejected: Family::default(),
            waits: Family::new_with_constructor(wait_buckets),
            nominal_limits: Family::default(),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_flowcontrol_current_inqueue_requests",
            "[BETA] Number of requests currently pending in queues of the API Priority and Fairness subsystem",
            self.in_queue.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_current_executing_requests",
            "[BETA] Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
            self.executing.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_current_executing_seats",
            "[BETA] Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
            self.seats.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_dispatched_requests",
            "[BETA] Number of requests executed by API Priority and Fairness subsystem",
            self.dispatched.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_rejected_requests",
            "[BETA] Number of requests rejected by API Priority and Fairness subsystem",
            self.rejected.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_request_wait_duration_seconds",
            "[BETA] Length of time a request spent waiting in its queue",
            self.waits.clone(),
        );
        registry.register(
            "apiserver_flowcontrol_nominal_limit_seats",
            "[BETA] Nominal number of execution seats configured for each priority level",
            self.nominal_limits.clone(),
        );
    }

    /// Replaces the limits of the levels.
    pub(super) fn set_nominal_limits<'a>(&self, limits: impl Iterator<Item = (&'a str, u32)>) {
        self.nominal_limits.clear();
        for (level, seats) in limits {
            let labels = LevelLabels {
                priority_level: level.to_owned(),
            };
            self.nominal_limits
                .get_or_create_owned(&labels)
                .set(seats.into());
        }
    }

    /// Returns the metrics of a schema that leads to a level.
    pub(super) fn of_schema(&self, schema: &str, level: &str) -> SchemaMetrics {
        let labels = FlowLabels {
            flow_schema: schema.to_owned(),
            priority_level: level.to_owned(),
        };
        SchemaMetrics {
            in_queue: self.in_queue.get_or_create_owned(&labels),
            executing: self.executing.get_or_create_owned(&labels),
            seats: self.seats.get_or_create_owned(&labels),
            dispatched: self.dispatched.get_or_create_owned(&labels),
            all: self.clone(),
            labels,
        }
    }
}

fn wait_buckets() -> Histogram {
    Histogram::new([
        0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0,
    ])
}

impl Rejection {
    /// All reasons.
    const ALL: [Self; 4] = [
        Self::QueueFull,
        Self::NoSeats,
        Self::TimeOut,
        Self::Cancelled,
    ];
}

impl SchemaMetrics {
    /// Returns the name of the level to which the schema leads.
    pub(super) fn level(&self) -> &str {
        &self.labels.priority_level
    }

    /// Adds the figures of the schema's requests to those of its level.
    pub(super) fn add_to(&self, level: &mut LevelFigures) {
        let number = |gauge: &Number| u64::try_from(gauge.get()).unwrap_or_default();
        level.executing += number(&self.executing);
        level.taken += number(&self.seats);
        level.waiting += number(&self.in_queue);
        for reason in Rejection::ALL {
            let rejected = self.all.rejected.get(&self.rejections(reason));
            level.rejected += rejected.map_or(0, |counter| counter.get());
        }
    }

    fn rejections(&self, rejection: Rejection) -> RejectionLabels {
        RejectionLabels {
            flow_schema: self.labels.flow_schema.clone(),
            priority_level: self.labels.priority_level.clone(),
            reason: match rejection {
                Rejection::QueueFull => "queue-full",
                Rejection::NoSeats => "concurrency-limit",
                Rejection::TimeOut => "time-out",
                Rejection::Cancelled => "cancelled",
            },
        }
    }

    pub(super) fn reject(&self, rejection: Rejection) {
        let labels = self.rejections(rejection);
        self.all.rejected.get_or_create_owned(&labels).inc();
    }

    fn waited(&self, executes: bool, waited: Duration) {
        let labels = WaitLabels {
            execute: if executes { "true" } else { "false" },
            flow_schema: self.labels.flow_schema.clone(),
            priority_level: self.labels.priority_level.clone(),
        };
        let histogram = self.all.waits.get_or_create_owned(&labels);
        histogram.observe(waited.as_secs_f64());
    }
}

/// A request that waits, until it is dropped.
#[derive(Debug)]
pub(super) struct InQueue<'a> {
    metrics: &'a SchemaMetrics,
    clock: &'a Clock,
    since: Instant,
    /// The outcome; `None` as long as the request waits.
    outcome: Option<Result<(), Rejection>>,
}

impl<'a> InQueue<'a> {
    pub(super) fn new(metrics: &'a SchemaMetrics, clock: &'a Clock) -> Self {
        metrics.in_queue.inc();
        Self {
            metrics,
            clock,
            since: clock.now(),
            outcome: None,
        }
    }

    pub(super) fn ends(mut self, outcome: Result<(), Rejection>) {
        self.outcome = Some(outcome);
    }
}

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        self.metrics.in_queue.dec();
        let outcome = self.outcome.unwrap_or(Err(Rejection::Cancelled));
        let waited = self.clock.now().saturating_duration_since(self.since);
        self.metrics.waited(outcome.is_ok(), waited);
        if let Err(rejection) = outcome {
            self.metrics.reject(rejection);
        }
    }
}

/// A request that is served, until it is dropped.
#[derive(Debug)]
pub(super) struct Executing {
    metrics: Arc<SchemaMetrics>,
    width: i64,
}

impl Executing {
    pub(super) fn new(metrics: &Arc<SchemaMetrics>, width: u32) -> Self {
        let width = i64::from(width);
        metrics.dispatched.inc();
        metrics.executing.inc();
        metrics.seats.inc_by(width);
        Self {
            metrics: Arc::clone(metrics),
            width,
        }
    }
}

impl Drop for Executing {
    fn drop(&mut self) {
        self.metrics.executing.dec();
        self.metrics.seats.dec_by(self.width);
    }
}
