//! Cleans up definitions that are being deleted: deletes their objects, then removes their finalizer.
//!
//! It runs concurrently with the controller, so that a definition with many objects delays no others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::{self, BoxFuture};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use ringwatch::clock::{Clock, Instant};
use ringwatch_apiextensions::Definition;
use ringwatch_apimachinery::Error;

use super::{ControllerState, CustomResources, Serving};
use crate::work_queue::{WorkQueue, WorkQueueMetrics};

/// Maximum number of definitions that are cleaned up at a time. The others wait.
const RUNNING_MAX: usize = 4;

/// Interval of checks if the objects of a definition that is being deleted are gone.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// The name of the queue in metrics: that of the controller in kube-apiserver.
const QUEUE: &str = "crd_finalizer";

/// The name of a definition, and how its clean-up ended.
pub(super) type CleanUpEnd = (String, Result<(), Error>);

/// The definitions that are being cleaned up.
pub(super) struct CleanUps<'a> {
    running: FuturesUnordered<BoxFuture<'a, CleanUpEnd>>,
    /// The names of those that run.
    names: BTreeSet<String>,
    /// The instants at which definitions are cleaned up again that had objects left, or whose deletion has not been
    /// seen here yet, by their names.
    again: BTreeMap<String, Instant>,
    /// Measures how long those wait that are due.
    queue: WorkQueue,
}

impl<'a> CleanUps<'a> {
    pub(super) fn new(queues: &WorkQueueMetrics) -> Self {
        Self {
            running: FuturesUnordered::new(),
            names: BTreeSet::new(),
            again: BTreeMap::new(),
            queue: queues.queue(QUEUE),
        }
    }

    /// Starts the clean-ups that are due, as far as there is room.
    pub(super) fn begin(&mut self, custom: &'a CustomResources, state: &ControllerState) {
        let now = custom.clock.now();
        self.again
            .retain(|name, _| state.definitions.get(name).is_some_and(must_go));
        let due = self
            .waiting(state)
            .filter(|(_, at)| at.is_none_or(|at| at <= now));
        let due: Vec<(String, Instant)> = due
            .map(|(name, at)| (name.clone(), at.unwrap_or(now)))
            .collect();
        self.queue
            .set_waiting(due.iter().map(|(name, since)| (name.as_str(), *since)));
        for (name, _) in due.into_iter().take(RUNNING_MAX - self.running.len()) {
            self.queue.begin(&name, now);
            self.again.remove(&name);
            self.names.insert(name.clone());
            let objects = state.served.get(&name).and_then(Serving::unasked);
            let clean_up = async move {
                let ended = custom.clean_up(&name, objects).await;
                (name, ended)
            };
            self.running.push(clean_up.boxed());
        }
    }

    /// Returns when the next clean-up is due; `None` while there is no room, or nothing waits.
    pub(super) fn next_due(&self, state: &ControllerState) -> Option<Instant> {
        let has_room = self.running.len() < RUNNING_MAX;
        let due = self.waiting(state).filter_map(|(_, at)| at).min();
        due.filter(|_| has_room)
    }

    /// Returns the definitions to be cleaned up that are not running, each with the earliest time; `None` for at once.
    fn waiting<'s>(
        &'s self,
        state: &'s ControllerState,
    ) -> impl Iterator<Item = (&'s String, Option<Instant>)> {
        let waiting = state.definitions.iter();
        let waiting = waiting.filter(|(name, it)| must_go(it) && !self.names.contains(*name));
        waiting.map(|(name, _)| {
            let again = self.again.get(name).copied();
            (name, again.max(state.retries.due(name)))
        })
    }

    /// Waits for the next clean-up to end; never completes while none runs.
    pub(super) async fn ended(&mut self, clock: &Clock) -> CleanUpEnd {
        let Some((name, ended)) = self.running.next().await else {
            return future::pending().await;
        };
        self.queue.end(&name, clock.now());
        self.names.remove(&name);
        (name, ended)
    }

    /// Schedules another clean-up of a definition after a while, in case objects are left.
    pub(super) fn look_again(&mut self, name: String, now: Instant) {
        self.again.insert(name, now + LOOK_PERIOD);
    }
}

fn must_go(definition: &Definition) -> bool {
    definition.is_terminating() && definition.is_to_be_cleaned_up()
}
