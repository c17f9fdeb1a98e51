//! Every event goes to all watchers.

use clap::Args;
use serde::Serialize;

use super::delivery::Delivery;
use super::parameters::{WatcherFlags, WriteFlags};
use crate::context::Context;
use crate::error::LoadError;
use crate::flags::rate;
use crate::outcome::Run;

/// Many watchers of the same objects, written to at a steady rate.
#[derive(Args, Clone, Debug, Serialize)]
// Those of a restart are a group of this name, and have these among them.
#[group(skip)]
pub(crate) struct Flags {
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) watchers: WatcherFlags,

    /// Writes per second.
    #[arg(long, value_name = "RATE", default_value = "20", value_parser = rate)]
    pub(super) rate: f64,

    #[command(flatten)]
    #[serde(flatten)]
    pub(super) writes: WriteFlags,
}

pub(crate) async fn run(context: &Context, flags: &Flags) -> Result<Vec<Run>, LoadError> {
    let mut delivery = Delivery::prepare(context, &flags.writes).await?;
    delivery.watch_all(flags.watchers.watchers).await?;
    delivery.measure(flags.rate).await
}
