//! Some clients stop reading. The others must not notice, and those who stopped must get everything
//! once they read again.
//!
//! A stall must reach the server: what the kernel buffers for a client costs the server nothing, and
//! it grants a connection more the longer that has gone well. So before each half those clients
//! connect anew, and with little room before they stop.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::delivery::Delivery;
use super::parameters::WriteFlags;
use super::receivers::{DeliveryResult, Turns, all_received};
use crate::context::Context;
use crate::error::LoadError;
use crate::flags::rate;
use crate::fleet::{Fleet, GroupMode, WatcherGroup};
use crate::outcome::Run;
use crate::schedule::Schedule;
use crate::time::now;
use crate::units::millis;

/// Clients must have connected anew within this time.
const RECONNECT_SECONDS_MAX: u64 = 60;

/// Watchers of which some stop reading for half of each run.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct SlowFlags {
    /// Watchers that read all the time.
    #[arg(long, value_name = "N", default_value_t = 500,
          value_parser = clap::value_parser!(u32).range(1..))]
    watchers: u32,

    /// Watchers that stop reading for half of each run.
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..))]
    stalled: u32,

    /// Writes per second.
    #[arg(long, value_name = "RATE", default_value = "50", value_parser = rate)]
    rate: f64,

    #[command(flatten)]
    #[serde(flatten)]
    writes: WriteFlags,
}

/// The watchers that read all the time, and those that stop.
struct Groups {
    reading: Arc<WatcherGroup>,
    stalling: Arc<WatcherGroup>,
}

pub(crate) async fn run(context: &Context, flags: &SlowFlags) -> Result<Vec<Run>, LoadError> {
    let mut delivery = Delivery::prepare(context, &flags.writes).await?;
    let groups = Groups {
        reading: delivery.watch_all(flags.watchers).await?,
        // A server may end a watch that is not read. It goes on where it was then.
        stalling: delivery.watch_all_and_resume(flags.stalled).await?,
    };
    delivery.warm_up(flags.rate).await?;
    let length = context.length;
    delivery.idle(length.duration / 2).await;
    let mut runs = Vec::new();
    for what in length.names() {
        runs.push(one_run(&mut delivery, &groups, flags.rate, &what).await?);
    }
    delivery.close(&mut runs).await?;
    Ok(runs)
}

/// Measures a half in which all read, then one in which some do not.
async fn one_run(
    delivery: &mut Delivery<'_>,
    groups: &Groups,
    rate: f64,
    what: &str,
) -> Result<Run, LoadError> {
    let ended_before = groups.stalling.resumed();
    let calm = half(delivery, groups, GroupMode::Reads, rate, what).await?;
    let stalled = half(delivery, groups, GroupMode::Stalls, rate, what).await?;
    let mut tails = Vec::new();
    for percentile in [99.0, 99.9] {
        let at = |half: &Half| half.readers.seen.latencies.at(percentile);
        tails.extend(at(&calm).zip(at(&stalled)).map(|both| (percentile, both)));
    }
    let caught_up = stalled.caught_up;
    let others = [&calm, &stalled].map(|half| (half.others_expected, half.others_received));
    let calm = delivery.assess(calm.readers);
    let mut run = delivery.assess(stalled.readers);
    for (percentile, (calm, stalled)) in tails {
        let name = format!("delivery p{percentile}");
        run.lower(&format!("{name}, none stalled"), "ms", calm);
        let ratio = stalled / calm.max(f64::MIN_POSITIVE);
        run.lower(&format!("{name}, stalled over none"), "times", ratio);
    }
    run.lower("catching up", "ms", millis(caught_up));
    let ended = groups.stalling.resumed() - ended_before;
    run.note("watches ended", "", ended as f64);
    // Both halves, for those who read and for those who stopped.
    run.seconds += calm.seconds;
    run.faults.splice(0..0, calm.faults);
    for (expected, received) in others.into_iter().chain([(calm.expected, calm.received)]) {
        run.expected += expected;
        run.received += received;
    }
    Ok(run)
}

/// The measurements of one half of a run.
struct Half {
    /// The delivery to the watchers that read all the time.
    readers: DeliveryResult,
    others_expected: u64,
    others_received: u64,
    /// The time that the others took until they had everything too.
    caught_up: Duration,
}

async fn half(
    delivery: &mut Delivery<'_>,
    groups: &Groups,
    mode: GroupMode,
    rate: f64,
    what: &str,
) -> Result<Half, LoadError> {
    let Groups { reading, stalling } = groups;
    stalling.set_mode(GroupMode::Away).await;
    stalling.set_small_buffers(mode == GroupMode::Stalls);
    stalling.set_mode(GroupMode::Reads).await;
    if !stalling
        .until_live(stalling.watchers(), RECONNECT_SECONDS_MAX)
        .await
    {
        let live = stalling.live();
        stalling.fault(format!(
            "{live} of {} watchers came back",
            stalling.watchers()
        ));
    }
    Fleet::gauges(&[Arc::clone(stalling)]).clear();
    stalling.set_mode(mode).await;
    let duration = delivery.context.length.duration / 2;
    let turns = Turns::one(Schedule::writes(rate, duration));
    let schedule = || Schedule::steady(rate);
    let those = [Arc::clone(reading)];
    let readers = delivery
        .observe_turns(what, &those, schedule, turns)
        .await?;
    let from = now();
    stalling.set_mode(GroupMode::Reads).await;
    let others_expected = turns.writes * stalling.watchers() as u64;
    all_received(&[Arc::clone(stalling)], others_expected).await;
    Ok(Half {
        readers,
        others_expected,
        others_received: stalling.received(),
        caught_up: from.elapsed(),
    })
}
