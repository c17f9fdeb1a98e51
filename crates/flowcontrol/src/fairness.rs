//! API Priority and Fairness: queues requests when there are more than can be served at a time.
//!
//! A request belongs to a flow of a priority level ([`crate`]). While the level has free seats it is served at once;
//! else it waits in the queue of its flow. Of the waiting flows the one with the fewest seats is next. No flow gets
//! more than half of the seats of its level, so one user's slow requests always leave room for another's.

mod metrics;
mod seats;
pub(crate) mod watches;
mod width;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use prometheus_client::registry::Registry;

use self::metrics::{Executing, FairnessMetrics, InQueue, Rejection, SchemaMetrics};
use self::seats::{Seat, SeatRequest, Seats};
pub use self::watches::{CountedWatch, UserWatches};
pub use self::width::width;
use ringwatch::clock::{Clock, Instant};
use ringwatch_authorization::Attributes;

use crate::{Flow, FlowTable};

/// The response headers with the uids of the flow schema and priority level.
const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The divisor of a request's timeout that gives the maximum time in a queue.
const WAIT_DIVISOR: u32 = 4;

/// Admits requests by flow schemas and priority levels.
#[derive(Debug)]
pub struct Fairness {
    flows: ArcSwap<Flows>,
    seats: Arc<Seats>,
    wait_max: Duration,
    metrics: FairnessMetrics,
}

/// The flow schemas, and the metrics of each.
#[derive(Debug, Default)]
struct Flows {
    table: FlowTable,
    metrics: HashMap<String, Arc<SchemaMetrics>>,
}

/// A request that holds its seats until it is dropped.
#[derive(Debug)]
pub struct Turn {
    /// The seats; `None` if its level is exempt.
    _seat: Option<Seat>,
    _executing: Executing,
}

/// The figures of a priority level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelFigures {
    /// The name of the level.
    pub name: String,
    /// The nominal number of seats; `None` if the level is exempt.
    pub seats: Option<u32>,
    /// The requests that are served.
    pub executing: u64,
    /// The seats that they take.
    pub taken: u64,
    /// The requests that wait.
    pub waiting: u64,
    /// The requests that were refused so far, by the schemas that lead to the level now.
    pub rejected: u64,
}

impl LevelFigures {
    fn new(name: &str, seats: Option<u32>) -> Self {
        Self {
            name: name.to_owned(),
            seats,
            executing: 0,
            taken: 0,
            waiting: 0,
            rejected: 0,
        }
    }
}

/// The identifiers of a request's flow schema and priority level, which its response has in headers.
#[derive(Clone, Debug)]
pub struct Classification {
    /// The uid of the flow schema.
    pub schema: String,
    /// The uid of the priority level.
    pub level: String,
}

impl Classification {
    /// Writes them into the headers of the response.
    pub fn add_headers(self, headers: &mut HeaderMap) {
        for (name, uid) in [(SCHEMA_UID, self.schema), (LEVEL_UID, self.level)] {
            if let Ok(uid) = HeaderValue::try_from(uid) {
                headers.insert(name, uid);
            }
        }
    }
}

impl Fairness {
    /// Creates the filter for these schemas and levels. A request may hold its seats for `request_timeout` at most.
    #[must_use]
    pub fn new(total: u32, request_timeout: Duration, flows: FlowTable) -> Self {
        let fairness = Self {
            flows: ArcSwap::default(),
            seats: Arc::new(Seats::new(total, request_timeout)),
            wait_max: request_timeout / WAIT_DIVISOR,
            metrics: FairnessMetrics::new(),
        };
        fairness.set_flows(flows);
        fairness
    }

    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// Replaces the schemas and levels.
    pub fn set_flows(&self, table: FlowTable) {
        self.seats.set_levels(table.levels());
        let limits = self.seats.nominal_limits(table.levels());
        let limits = limits.iter().map(|(level, seats)| (&**level, *seats));
        self.metrics.set_nominal_limits(limits);
        let metrics = table.schemas().map(|(schema, level)| {
            let metrics = self.metrics.of_schema(schema, &level.name);
            (schema.to_owned(), Arc::new(metrics))
        });
        let metrics = metrics.collect();
        self.flows.store(Arc::new(Flows { table, metrics }));
    }

    /// Returns the figures of each level, by their names.
    #[must_use]
    pub fn levels(&self) -> Vec<LevelFigures> {
        let flows = self.flows.load();
        let nominal = self.seats.nominal_limits(flows.table.levels());
        let levels = flows.table.levels().iter().zip(nominal);
        let mut figures: BTreeMap<&str, LevelFigures> = levels
            .map(|(level, (_, seats))| {
                let seats = level.limits.map(|_| seats);
                (&*level.name, LevelFigures::new(&level.name, seats))
            })
            .collect();
        for metrics in flows.metrics.values() {
            if let Some(level) = figures.get_mut(metrics.level()) {
                metrics.add_to(level);
            }
        }
        figures.into_values().collect()
    }

    /// Finds the flow schema and priority level of a request.
    #[must_use]
    pub fn classify(&self, attributes: &Attributes<'_>) -> Option<Classification> {
        let flows = self.flows.load();
        let flow = flows.table.find(attributes)?;
        Some(Classification {
            schema: flow.schema_uid.to_owned(),
            level: flow.level.uid.clone(),
        })
    }

    /// Waits for the request's turn, at most for a part of the time that it may take. It takes `width` seats.
    ///
    /// # Errors
    /// [`TooMany`] if the request has waited for too long, or the queue of its flow is full.
    pub async fn turn(
        &self,
        attributes: &Attributes<'_>,
        width: u32,
        clock: &Clock,
    ) -> Result<Option<Turn>, TooMany> {
        let (seats, metrics) = {
            let flows = self.flows.load();
            let Some(Flow { level, key, .. }) = flows.table.find(attributes) else {
                return Ok(None);
            };
            let Some(metrics) = flows.metrics.get(key.0).cloned() else {
                return Ok(None);
            };
            let seats = match level.limits {
                Some(limits) => {
                    let now: Instant = clock.now();
                    let request = self.seats.ask(&level.name, limits, key, width, now);
                    let refusal = match limits.queue_length {
                        0 => Rejection::NoSeats,
                        _ => Rejection::QueueFull,
                    };
                    Some(request.ok_or(refusal))
                }
                None => None,
            };
            (seats, metrics)
        };
        let seat = match seats {
            None => None,
            Some(Ok(request)) => Some(self.wait(request, &metrics, clock).await?),
            Some(Err(rejection)) => {
                metrics.reject(rejection);
                return Err(TooMany);
            }
        };
        let width = seat.as_ref().map_or(width, Seat::width);
        Ok(Some(Turn {
            _seat: seat,
            _executing: Executing::new(&metrics, width),
        }))
    }

    async fn wait(
        &self,
        request: SeatRequest,
        metrics: &SchemaMetrics,
        clock: &Clock,
    ) -> Result<Seat, TooMany> {
        let waits = request.waits().then(|| InQueue::new(metrics, clock));
        let seated = clock.timeout(self.wait_max, request.seated()).await;
        let seat = seated.ok().flatten();
        if let Some(waits) = waits {
            waits.ends(seat.as_ref().map(|_| ()).ok_or(Rejection::TimeOut));
        }
        seat.ok_or(TooMany)
    }
}

/// The request is refused with 429: its queue is full, or it has waited for too long.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many requests")]
pub struct TooMany;
