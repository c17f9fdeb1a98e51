//! Every event goes to all watchers.

use clap::Args;
use serde::Serialize;

use super::delivery::{Delivery, WriteFlags};
use crate::load::context::Context;
use crate::load::error::LoadError;
use crate::load::flags::rate;
use crate::load::fleet::Sees;
use crate::load::outcome::Run;
use crate::load::payload::Kind;

/// Many watchers of the same objects, written to at a steady rate.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct Flags {
    /// How many watchers.
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(1..))]
    watchers: u32,

    /// Writes a second.
    #[arg(long, value_name = "RATE", default_value = "20", value_parser = rate)]
    rate: f64,

    #[command(flatten)]
    #[serde(flatten)]
    writes: WriteFlags,
}

pub(crate) async fn run(context: &Context, flags: &Flags) -> Result<Vec<Run>, LoadError> {
    let kind = Kind::ConfigMaps;
    let mut delivery = Delivery::prepare(context, kind, &flags.writes).await?;
    let sees = Sees::All(flags.writes.writers);
    delivery.watch_all(flags.watchers, sees).await?;
    delivery.measure(flags.rate).await
}
