//! All watchers lose their connections, miss some events, and come back at once.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::delivery::{Delivery, add_usage};
use super::parameters::{WatcherFlags, WriteFlags};
use super::receivers::{Turns, all_received};
use crate::context::{Context, Length};
use crate::error::LoadError;
use crate::fleet::{Fleet, GroupMode, WatcherGroup};
use crate::outcome::Run;
use crate::schedule::Schedule;
use crate::time::now;

/// A run takes as long as it takes.
pub(crate) const DEFAULT_LENGTH: Length = Length {
    runs: 5,
    duration: Duration::from_secs(5),
    warm_up: Duration::ZERO,
};
/// All must have come back within this time.
const BACK_SECONDS_MAX: u64 = 60;

/// Watchers that go away, miss some events, and come back all at once.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct ResumeFlags {
    #[command(flatten)]
    #[serde(flatten)]
    watchers: WatcherFlags,

    /// Events that each of them misses.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    behind: u32,

    #[command(flatten)]
    #[serde(flatten)]
    writes: WriteFlags,
}

pub(crate) async fn run(context: &Context, flags: &ResumeFlags) -> Result<Vec<Run>, LoadError> {
    let mut delivery = Delivery::prepare(context, &flags.writes).await?;
    let watchers = flags.watchers.watchers;
    let group = delivery.watch_all_and_resume(watchers).await?;
    delivery.idle(context.length.duration).await;
    let mut runs = Vec::new();
    for what in context.length.names() {
        runs.push(one_run(&mut delivery, &group, flags.behind, &what).await?);
    }
    delivery.close(&mut runs).await?;
    Ok(runs)
}

async fn one_run(
    delivery: &mut Delivery<'_>,
    group: &Arc<WatcherGroup>,
    behind: u32,
    what: &str,
) -> Result<Run, LoadError> {
    let watchers = group.watchers();
    group.set_mode(GroupMode::Away).await;
    let schedule = || Schedule::bursts(behind, Duration::ZERO);
    let turns = Turns::one(u64::from(behind));
    // Nobody is there to wait for.
    delivery
        .observe_turns("writing", &[], schedule, turns)
        .await?;
    let gone_before = group.gone();
    let expected = u64::from(behind) * watchers as u64;
    let gauges = Fleet::gauges(&delivery.groups);
    let coming_back = async {
        let from = now();
        group.set_mode(GroupMode::Reads).await;
        group.until_live(watchers, BACK_SECONDS_MAX).await;
        let live = from.elapsed();
        all_received(&[Arc::clone(group)], expected).await;
        (live, from.elapsed())
    };
    let context = delivery.context;
    let observing = context.observe(what, expected, &gauges, coming_back);
    let ((live, caught_up), seen) = observing.await;
    let mut run = Run {
        seconds: seen.elapsed.as_secs_f64(),
        expected,
        received: seen.received,
        faults: delivery.faults(),
        ..Run::default()
    };
    run.lower("all connected", "s", live.as_secs_f64());
    run.lower("all caught up", "s", caught_up.as_secs_f64());
    run.lower(
        "watches expired (410)",
        "",
        (group.gone() - gone_before) as f64,
    );
    add_usage(
        &mut run,
        &seen,
        delivery.baseline(),
        "watcher",
        watchers as f64,
    );
    run.series = seen.series;
    Ok(run)
}
