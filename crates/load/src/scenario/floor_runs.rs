//! The runs of a delivery against the floor: each event that the server delivered is delivered again, byte for byte
//! but for its due time, to as many watchers of the floor.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::try_join;

use super::parameters::FloorFlags;
use super::receivers::{DeliveryResult, Receivers, Turns};
use crate::client::OwnedEvent;
use crate::context::Context;
use crate::error::LoadError;
use crate::fleet::{Fleet, WatchSpec, WatcherGroup};
use crate::floor::Floor;
use crate::outcome::Run;
use crate::schedule::Schedule;
use crate::units::micros;

/// The events of a run are kept in memory, in so many bytes at most.
const KEPT_BYTES_MAX: u64 = 256 << 20;

/// The runs against the floor beside those of a server, if there are to be any.
pub(super) struct FloorRuns(Option<Replay>);

/// A floor with its watchers, and the group whose events it sends again.
struct Replay {
    floor: Floor,
    fleet: Fleet,
    /// The watchers of the floor.
    group: Arc<WatcherGroup>,
    /// The watchers of the server, whose events are delivered again.
    served: Arc<WatcherGroup>,
}

impl FloorRuns {
    /// Returns no runs, for scenarios without a floor.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Starts a floor if the flags ask for one, with as many watchers as this group of the server has, by `spec`.
    /// Nothing may have been written since the group was opened. `turns` are those of the longest run, of events of
    /// `event_bytes`.
    ///
    /// # Errors
    /// [`LoadError::WrongFlags`]: a run's events are too large to be kept. Else the floor cannot be started, or
    /// watched.
    pub(super) async fn open(
        context: &Context,
        flags: FloorFlags,
        turns: Turns,
        event_bytes: u64,
        spec: WatchSpec,
        served: Arc<WatcherGroup>,
    ) -> Result<Self, LoadError> {
        if !flags.floor {
            return Ok(Self::none());
        }
        let bytes = turns.all().saturating_mul(event_bytes);
        if bytes > KEPT_BYTES_MAX {
            return Err(LoadError::WrongFlags(format!(
                "--floor keeps the events of a run in memory, {bytes} bytes of at most {KEPT_BYTES_MAX}; shorten \
                 --duration, or write less"
            )));
        }
        let floor = Floor::start(context.floor_protocol(served.watchers()))?;
        let fleet = context.fleet_of(floor.client())?;
        let taking = floor.take_watches(served.watchers());
        let ((), group) = try_join(taking, fleet.open(spec)).await?;
        served.set_keeping(true);
        Ok(Self(Some(Replay {
            floor,
            fleet,
            group,
            served,
        })))
    }

    /// Loads the floor with what the server was warmed up with.
    pub(super) async fn warm_up(
        &mut self,
        context: &Context,
        turns: Turns,
        schedule: impl Fn() -> Schedule,
    ) -> Result<(), LoadError> {
        if let Some(replay) = &self.0 {
            let events = replay.served.take_kept();
            if events.len() as u64 != turns.all() {
                // The first run fails for what was lost.
                return Ok(());
            }
            replay
                .deliver(context, "floor warm-up", &events, turns, schedule)
                .await?;
        }
        Ok(())
    }

    /// Delivers the events of the last run again and adds the figures to those of the run. After a run in which
    /// something was lost there is nothing to compare with, and no further run against the floor.
    ///
    /// `next` are the writes of each object that come next.
    pub(super) async fn measure(
        &mut self,
        context: &Context,
        next: &[u32],
        what: &str,
        turns: Turns,
        schedule: impl Fn() -> Schedule,
        run: &mut Run,
    ) -> Result<(), LoadError> {
        if !run.is_whole()
            && let Some(replay) = self.0.take()
        {
            replay.served.set_keeping(false);
            replay.served.take_kept();
        }
        let Some(replay) = &self.0 else {
            return Ok(());
        };
        let events = replay.served.take_kept();
        let what = format!("floor, {what}");
        let (delivered, cpu) = replay
            .deliver(context, &what, &events, turns, schedule)
            .await?;
        delivered.doubt_client(context);
        let faults = replay.group.take_faults(next);
        run.faults
            .extend(faults.into_iter().map(|fault| format!("floor: {fault}")));
        let (expected, received) = (delivered.expected, delivered.seen.received);
        if received != expected {
            run.faults
                .push(format!("floor: {received} received of {expected}"));
        }
        add_figures(run, &delivered, cpu);
        Ok(())
    }
}

impl Replay {
    /// Delivers these events, turn by turn. Returns the processor time of the floor with what came of it.
    async fn deliver(
        &self,
        context: &Context,
        what: &str,
        events: &[OwnedEvent],
        turns: Turns,
        schedule: impl Fn() -> Schedule,
    ) -> Result<(DeliveryResult, Duration), LoadError> {
        let receivers = Receivers {
            context,
            fleet: &self.fleet,
            groups: &[Arc::clone(&self.group)],
        };
        let expected = turns.writes * self.group.watchers() as u64;
        let mut cpu = Duration::ZERO;
        let mut written = events.chunks(turns.writes.max(1) as usize);
        let delivering =
            receivers.observe(what, turns, expected, schedule, async |schedule, sent| {
                let events = written.next().unwrap_or_default();
                cpu += self.floor.deliver(events, schedule).await?;
                sent.fetch_add(events.len(), Ordering::Relaxed);
                Ok(())
            });
        let delivered = delivering.await?;
        Ok((delivered, cpu))
    }
}

fn add_figures(run: &mut Run, delivered: &DeliveryResult, cpu: Duration) {
    let seen = &delivered.seen;
    let each = micros(cpu) / seen.received.max(1) as f64;
    run.note("floor CPU per delivery", "us", each);
    for (name, percentile) in [("floor delivery p50", 50.0), ("floor delivery p99", 99.0)] {
        if let Some(value) = seen.latencies.at(percentile) {
            run.note(name, "ms", value);
        }
    }
    if let Some(server) = run.value("server CPU per delivery") {
        run.lower("server CPU over floor", "times", server / each);
    }
}
