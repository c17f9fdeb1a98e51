//! Watchers of the pods of one node each: an event concerns one of them, however many there are.

use clap::Args;
use serde::Serialize;

use super::delivery::Delivery;
use super::floor_runs::FloorRuns;
use super::parameters::{WatcherFlags, WriteFlags};
use crate::context::Context;
use crate::error::LoadError;
use crate::flags::rate;
use crate::fleet::Sees;
use crate::outcome::Run;
use crate::payload::{ObjectKind, node};

/// Watchers that each select the pods of one node by a field selector. What an event costs should not
/// depend on how many they are.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct SelectiveFlags {
    #[command(flatten)]
    #[serde(flatten)]
    watchers: WatcherFlags,

    /// Number of pods that are written, each on a node of its own, in turns.
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pods: u32,

    /// Writes per second, over all pods.
    #[arg(long, value_name = "RATE", default_value = "200", value_parser = rate)]
    rate: f64,

    #[command(flatten)]
    #[serde(flatten)]
    writes: WriteFlags,
}

pub(crate) async fn run(context: &Context, flags: &SelectiveFlags) -> Result<Vec<Run>, LoadError> {
    let kind = ObjectKind::Pods;
    let mut delivery = Delivery::prepare_objects(context, kind, &flags.writes, flags.pods).await?;
    let mut spec = delivery.spec(flags.watchers.watchers, Sees::Own);
    let collection = delivery.objects.collection.clone();
    spec.path = Box::new(move |watcher| {
        let node = node(watcher as u32);
        let selector = format!("fieldSelector=spec.nodeName%3D{node}");
        format!("{collection}?watch=true&allowWatchBookmarks=true&{selector}")
    });
    delivery.watch(spec).await?;
    delivery.measure(flags.rate, FloorRuns::none()).await
}
