//! Watchers while they receive: a run's events are written turn by turn, and each turn is over when all of its events
//! have come.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::context::Context;
use crate::error::LoadError;
use crate::fleet::{Fleet, ThreadLoad, WatcherGroup, until};
use crate::measure::{Latencies, Observation, too_busy};
use crate::schedule::Schedule;
use crate::time::{nanos, now};

/// Events that are still on their way after the last write must come within this time.
pub(super) const LATE_MAX: Duration = Duration::from_secs(60);
/// The same when something went wrong already.
const LATE_FAULTY_MAX: Duration = Duration::from_secs(2);
/// A client that wakes up later than this, and than half of what it measures, measures itself.
const LAG_MS_MAX: f64 = 5.0;

/// Writes in turns: each is awaited before the next begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    pub(super) count: u32,
    /// Writes of a turn.
    pub(super) writes: u64,
    /// The least time from the beginning of one turn to that of the next.
    pub(super) every: Duration,
}

/// The groups that receive a run's events, and the fleet that they belong to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receivers<'a> {
    pub(super) context: &'a Context,
    pub(super) fleet: &'a Fleet,
    pub(super) groups: &'a [Arc<WatcherGroup>],
}

/// The result of a delivery: how many events there had to be, and what was measured.
#[derive(Debug)]
pub(super) struct DeliveryResult {
    pub(super) expected: u64,
    pub(super) seen: Observation,
    pub(super) threads: ThreadLoad,
    /// The times of the turns from the first write until all events had come.
    pub(super) drains: Latencies,
}

impl Turns {
    /// Returns the one turn of so many writes.
    pub(super) fn one(writes: u64) -> Self {
        Self {
            count: 1,
            writes,
            every: Duration::ZERO,
        }
    }

    /// Returns the number of writes in all turns.
    pub(super) fn all(&self) -> u64 {
        u64::from(self.count) * self.writes
    }
}

impl Receivers<'_> {
    /// Has `write` make the events of each turn by a new schedule, and waits after each until that many `events` have
    /// come to all groups together. `write` also counts what it has written.
    ///
    /// # Errors
    /// Those of `write`. Events that do not come are no error here.
    pub(super) async fn observe(
        &self,
        what: &str,
        turns: Turns,
        events: u64,
        schedule: impl Fn() -> Schedule,
        mut write: impl AsyncFnMut(Schedule, &AtomicUsize) -> Result<(), LoadError>,
    ) -> Result<DeliveryResult, LoadError> {
        let expected = events * u64::from(turns.count);
        let gauges = Fleet::gauges(self.groups);
        let sent = Arc::clone(&gauges.sent);
        let delivering = async {
            let mut drains = Latencies::default();
            for turn in 1..=turns.count {
                let schedule = schedule();
                let (due, _) = schedule.due(0);
                write(schedule, &sent).await?;
                all_received(self.groups, events * u64::from(turn)).await;
                drains.record(nanos(now().saturating_duration_since(due)));
                if turn < turns.count {
                    tokio::time::sleep_until(due + turns.every).await;
                }
            }
            Ok::<_, LoadError>(drains)
        };
        let observing = self.context.observe(what, expected, &gauges, delivering);
        let ((drains, seen), threads) = self.fleet.measure_threads(observing).await;
        Ok(DeliveryResult {
            expected,
            seen,
            threads,
            drains: drains?,
        })
    }
}

impl DeliveryResult {
    /// Warns if the client was so busy or so late that the figures are partly its own.
    pub(super) fn doubt_client(&self, context: &Context) {
        let Self { seen, threads, .. } = self;
        if let Some(busy) = too_busy(threads.busiest, seen.elapsed) {
            context.warn(format!(
                "a thread of the client was busy for {:.0} % of the time, so the client is measured \
                 too; use more --threads, or fewer watchers",
                busy * 100.0
            ));
        }
        let lag = threads.lag.at(99.0).unwrap_or_default();
        let latency = seen.latencies.at(99.0).unwrap_or_default();
        if lag > LAG_MS_MAX && lag > latency / 2.0 {
            context.warn(format!(
                "the client woke up to {lag:.0} ms late (p99), so latencies are partly its own; run \
                 it on another machine, or load less"
            ));
        }
    }
}

/// Waits until so many events have come. When something is known to be lost, waiting for it is of
/// little use.
pub(super) async fn all_received(groups: &[Arc<WatcherGroup>], expected: u64) {
    let received = || groups.iter().map(|group| group.received()).sum::<u64>();
    let all_came = || received() >= expected;
    let is_faulty = || groups.iter().any(|group| group.has_faults());
    until(LATE_MAX, || all_came() || is_faulty()).await;
    until(LATE_FAULTY_MAX, all_came).await;
}
