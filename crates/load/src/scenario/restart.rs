//! The server is restarted by a command while clients watch and write. Every watch goes on where it
//! was, and every write is made.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::delivery::Delivery;
use super::parameters::SteadyFlags;
use crate::context::{Context, Length};
use crate::error::LoadError;
use crate::fleet::WatcherGroup;
use crate::outcome::Run;
use crate::schedule::Schedule;
use crate::shell_command;
use crate::time::now;

pub(crate) const DEFAULT_LENGTH: Length = Length {
    runs: 1,
    duration: Duration::from_secs(20),
    warm_up: Duration::from_secs(2),
};
/// All watchers must have come back within this time.
const BACK_SECONDS_MAX: u64 = 60;

/// Watchers and writers, and a server that is restarted in between.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct RestartFlags {
    /// Command that restarts the server; run by a shell halfway through the run. It must end by itself.
    #[arg(long, value_name = "COMMAND")]
    command: String,

    #[command(flatten)]
    #[serde(flatten)]
    load: SteadyFlags,
}

pub(crate) async fn run(context: &Context, flags: &RestartFlags) -> Result<Vec<Run>, LoadError> {
    let SteadyFlags {
        watchers,
        rate,
        writes,
    } = &flags.load;
    let mut delivery = Delivery::prepare(context, writes).await?;
    delivery.writers.start_persisting();
    let group = delivery.watch_all_and_resume(watchers.watchers).await?;
    delivery.warm_up(*rate).await?;
    let mut runs = Vec::new();
    for what in context.length.names() {
        runs.push(one_run(&mut delivery, &group, flags, &what).await?);
    }
    delivery.close(&mut runs).await?;
    Ok(runs)
}

async fn one_run(
    delivery: &mut Delivery<'_>,
    group: &Arc<WatcherGroup>,
    flags: &RestartFlags,
    what: &str,
) -> Result<Run, LoadError> {
    let (resumed, gone) = (group.resumed(), group.gone());
    let repeated = delivery.writers.repeated();
    let duration = delivery.context.length.duration;
    let half = duration / 2;
    let restarting = async {
        tokio::time::sleep(half).await;
        let began = now();
        shell_command::run(&flags.command)
            .await
            .map_err(LoadError::Command)?;
        let ended = began.elapsed();
        // A watcher that has not noticed yet counts as one that is there, so they must have come
        // back first.
        let back = group.watchers();
        group.until_resumed(resumed + back, BACK_SECONDS_MAX).await;
        group.until_live(back, BACK_SECONDS_MAX).await;
        Ok::<_, LoadError>((ended, began.elapsed()))
    };
    let rate = flags.load.rate;
    let writes = Schedule::writes(rate, duration);
    let delivering = delivery.observe(what, || Schedule::steady(rate), writes);
    let (delivered, restarted) = tokio::join!(delivering, restarting);
    let (ended, back) = restarted?;
    let mut run = delivery.assess(delivered?);
    let felt = group.resumed() - resumed;
    if felt < group.watchers() {
        let watchers = group.watchers();
        run.faults
            .push(format!("{felt} of {watchers} watchers felt a restart"));
    }
    // The processor time of two processes is not that of one.
    run.figures
        .retain(|name, _| !name.starts_with("server CPU"));
    // How long writers and watchers felt it is the worst write and the worst delivery.
    let worst = delivery.writers.answers.lock().all().at(100.0);
    if let Some(worst) = worst {
        run.lower("write max", "ms", worst);
    }
    run.lower("command", "s", ended.as_secs_f64());
    run.lower("all watching again", "s", back.as_secs_f64());
    run.lower("watches expired (410)", "", (group.gone() - gone) as f64);
    run.lower(
        "writes repeated",
        "",
        (delivery.writers.repeated() - repeated) as f64,
    );
    Ok(run)
}
