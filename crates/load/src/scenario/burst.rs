//! Many writes at once, again and again, each to an object of its own.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ringwatch_apimachinery::duration;
use serde::Serialize;

use super::delivery::Delivery;
use super::floor_runs::FloorRuns;
use super::parameters::{FloorFlags, SizeFlags, WatcherFlags, WriteFlags};
use super::receivers::Turns;
use crate::context::Context;
use crate::error::LoadError;
use crate::flags::seconds;
use crate::outcome::Run;
use crate::schedule::Schedule;

/// Many watchers of the same objects, written to in bursts.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct BurstFlags {
    #[command(flatten)]
    #[serde(flatten)]
    watchers: WatcherFlags,

    /// Writes in a burst, each on a connection of its own.
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    writes: u32,

    /// Pause between bursts, if all of the last one has come.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    #[serde(serialize_with = "seconds")]
    every: Duration,

    #[command(flatten)]
    #[serde(flatten)]
    size: SizeFlags,

    #[command(flatten)]
    #[serde(flatten)]
    floor: FloorFlags,
}

impl BurstFlags {
    fn turns(&self, duration: Duration) -> Turns {
        let every = self.every.as_secs_f64().max(0.001);
        Turns {
            count: (duration.as_secs_f64() / every).ceil() as u32,
            writes: u64::from(self.writes),
            every: self.every,
        }
    }
}

pub(crate) async fn run(context: &Context, flags: &BurstFlags) -> Result<Vec<Run>, LoadError> {
    let writes = WriteFlags {
        writers: flags.writes,
        size: flags.size.clone(),
    };
    let mut delivery = Delivery::prepare(context, &writes).await?;
    let group = delivery.watch_all(flags.watchers.watchers).await?;
    let length = context.length;
    let longest = flags.turns(length.duration.max(length.warm_up));
    let served = Arc::clone(&group);
    let spec = delivery.spec(flags.watchers.watchers, served.spec.sees);
    let bytes = delivery.objects.bytes;
    let mut floor = FloorRuns::open(context, flags.floor, longest, bytes, spec, served).await?;
    let groups = [group];
    let burst = || Schedule::bursts(flags.writes, Duration::ZERO);
    let warm_up = flags.turns(length.warm_up);
    if warm_up.count > 0 {
        delivery
            .observe_turns("warming up", &groups, burst, warm_up)
            .await?;
        floor.warm_up(context, warm_up, burst).await?;
    }
    delivery.idle(length.duration).await;
    let mut runs = Vec::new();
    for what in length.names() {
        let turns = flags.turns(length.duration);
        let delivered = delivery.observe_turns(&what, &groups, burst, turns).await?;
        let drains = delivered.drains.clone();
        let mut run = delivery.assess(delivered);
        for (name, percentile) in [("drain p50", 50.0), ("drain max", 100.0)] {
            if let Some(value) = drains.at(percentile) {
                run.lower(name, "ms", value);
            }
        }
        floor
            .measure(
                context,
                delivery.writers.next(),
                &what,
                turns,
                burst,
                &mut run,
            )
            .await?;
        runs.push(run);
    }
    delivery.close(&mut runs).await?;
    Ok(runs)
}
