//! Measures idle watchers: memory, bookmarks, and opening them.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::baseline::Baseline;
use super::delivery::Delivery;
use super::growth::Growth;
use super::parameters::{SizeFlags, WatcherFlags, WriteFlags};
use crate::context::{Context, Length};
use crate::error::LoadError;
use crate::fleet::{Fleet, GroupMode, Sees};
use crate::measure::Gauges;
use crate::outcome::Run;
use crate::schedule::Schedule;
use crate::units::{kibibytes, micros};

/// Memory shows best in a server that has not had the same watchers before, so there is one run.
pub(crate) const DEFAULT_LENGTH: Length = Length {
    runs: 1,
    duration: Duration::from_secs(40),
    warm_up: Duration::ZERO,
};
/// The one object that there is.
const WRITES: WriteFlags = WriteFlags {
    writers: 1,
    size: SizeFlags::DEFAULT,
};

/// Many watchers and nothing to tell them: what each costs in memory, and to open.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct IdleFlags {
    #[command(flatten)]
    #[serde(flatten)]
    watchers: WatcherFlags,
}

pub(crate) async fn run(context: &Context, flags: &IdleFlags) -> Result<Vec<Run>, LoadError> {
    let mut delivery = Delivery::prepare(context, &WRITES).await?;
    let mut runs = Vec::new();
    for what in context.length.names() {
        runs.push(one_run(&mut delivery, flags, &what).await?);
        for group in std::mem::take(&mut delivery.groups) {
            group.set_mode(GroupMode::Away).await;
        }
    }
    Ok(runs)
}

async fn one_run(
    delivery: &mut Delivery<'_>,
    flags: &IdleFlags,
    what: &str,
) -> Result<Run, LoadError> {
    let context = delivery.context;
    delivery.begin_anew().await?;
    let duration = context.length.duration;
    let watchers = f64::from(flags.watchers.watchers);
    // A server may still be giving back what it needed for something else.
    delivery.idle(duration / 4).await;
    let before = context.probe.usage().await;
    let spec = delivery.spec(flags.watchers.watchers, Sees::All(1));
    let gauges = Gauges::default();
    let opening = delivery.fleet.open(spec);
    let (group, opened) = context.observe("connecting", 0, &gauges, opening).await;
    let group = group?;
    delivery.groups.push(Arc::clone(&group));
    let gauges = Fleet::gauges(&delivery.groups);
    let waiting = tokio::time::sleep(duration);
    let ((), seen) = context.observe(what, 0, &gauges, waiting).await;
    let after = context.probe.usage().await;
    let live = group.live();
    let closing = delivery
        .observe("closing", || Schedule::bursts(1, Duration::ZERO), 1)
        .await?;
    let mut run = Run {
        seconds: seen.elapsed.as_secs_f64(),
        expected: closing.expected,
        received: closing.seen.received,
        faults: delivery.faults(),
        series: seen.series,
        ..Run::default()
    };
    if live != group.watchers() {
        run.faults.push(format!(
            "{live} watchers of {watchers} were left at the end"
        ));
    }
    if let (Some(before), Some(after)) = (before, after) {
        let growth = Growth::between(before, after, flags.watchers.watchers);
        if let Some(why) = growth.doubt() {
            context.warn(why);
        }
        if let Some(bytes) = growth.bytes() {
            let each = kibibytes(bytes) / watchers;
            run.lower("memory per watcher", "KiB", each);
        }
    }
    if let Some(cpu) = Baseline::beyond(delivery.baseline(), &opened, 0) {
        run.lower("server CPU per opening", "us", micros(cpu) / watchers);
    }
    if let Some(cpu) = seen.server_cpu {
        let percent = cpu.as_secs_f64() / seen.elapsed.as_secs_f64() * 100.0;
        run.lower("server CPU idle", "% of a core", percent);
    }
    run.lower("opening", "s", opened.elapsed.as_secs_f64());
    run.note(
        "bookmarks per watcher",
        "",
        group.bookmarks() as f64 / watchers,
    );
    Ok(run)
}
