//! Every event goes to all watchers.

use clap::Args;
use serde::Serialize;

use super::delivery::Delivery;
use super::floor_runs::FloorRuns;
use super::parameters::{FloorFlags, SteadyFlags};
use super::receivers::Turns;
use crate::context::Context;
use crate::error::LoadError;
use crate::outcome::Run;
use crate::schedule::Schedule;

/// Many watchers of the same objects, written to at a steady rate.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct FanoutFlags {
    #[command(flatten)]
    #[serde(flatten)]
    load: SteadyFlags,

    #[command(flatten)]
    #[serde(flatten)]
    floor: FloorFlags,
}

pub(crate) async fn run(context: &Context, flags: &FanoutFlags) -> Result<Vec<Run>, LoadError> {
    let SteadyFlags {
        watchers,
        rate,
        writes,
    } = &flags.load;
    let mut delivery = Delivery::prepare(context, writes).await?;
    let group = delivery.watch_all(watchers.watchers).await?;
    let longest = context.length.duration.max(context.length.warm_up);
    let turns = Turns::one(Schedule::writes(*rate, longest));
    let spec = delivery.spec(watchers.watchers, group.spec.sees);
    let bytes = delivery.objects.bytes;
    let floor = FloorRuns::open(context, flags.floor, turns, bytes, spec, group).await?;
    delivery.measure(*rate, floor).await
}
