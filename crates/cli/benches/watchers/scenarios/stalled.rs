//! One client in ten stops reading. The others must not notice, no watch may end, and the stalled
//! ones get everything once they read again.
//!
//! A stall must reach the server: what the kernel buffers for a client costs the server nothing.
//! The kernel grants a connection more the longer it has gone well, up to megabytes. So before each
//! stall those clients connect anew, with short segments and a small buffer of their own; then it
//! takes some 70 KiB.

use super::LATE_SECONDS_MAX;
use crate::clients::Clients;
use crate::figures::Series;
use crate::objects::{Kind, Objects};
use crate::protocol::{Mode, Opening};
use crate::server::Server;
use crate::writer::Writer;
use crate::{Failed, Settings};

/// One in so many stalls.
const STALLED_ONE_IN: usize = 10;

pub(super) async fn run(settings: &Settings) -> Result<(), Failed> {
    let watches = settings.watchers(1_000, 20);
    let rate = settings.rate(20, 100);
    let seconds = settings.seconds(60, 1);
    let runs = settings.runs(5, 1);
    let events = rate * seconds;
    let stalling = watches / STALLED_ONE_IN;

    let server = Server::start(settings, None).await?;
    let api = server.api()?;
    let objects = Objects::create(&api, Kind::ConfigMaps, 1).await?;
    let mut writer = Writer::connect(&api, 1, &objects.paths, 1).await?;
    let mut clients = Clients::start()?;
    let readers = clients
        .open(objects.watches(&api, watches - stalling))
        .await?;
    let stalled = clients
        .open(Opening {
            small_buffers: true,
            ..objects.watches(&api, stalling)
        })
        .await?;
    let (mut calm, mut disturbed, mut caught_up) =
        (Series::default(), Series::default(), Series::default());
    for _ in 0..runs {
        for (mode, p99) in [(Mode::Reads, &mut calm), (Mode::Stalls, &mut disturbed)] {
            clients.set(stalled, Mode::Away).await?;
            clients.set(stalled, Mode::Reads).await?;
            clients.await_live(LATE_SECONDS_MAX).await?;
            clients.begin().await?;
            clients.set(stalled, mode).await?;
            writer.write(events, rate).await?;
            let collected = clients.collect(readers, events, LATE_SECONDS_MAX).await?;
            p99.push(f64::from(collected.delay.p99) / 1e3);
            let from = crate::group::now();
            clients.set(stalled, Mode::Reads).await?;
            let collected = clients.collect(stalled, events, LATE_SECONDS_MAX).await?;
            if mode == Mode::Stalls {
                caught_up.push((crate::group::now() - from).as_secs_f64() * 1e3);
                let late = f64::from(collected.delay.max) / 1e6;
                println!("  the latest event of a stalled watch came {late:.1} s after its write");
            }
        }
    }
    println!(
        "stalled: {watches} watches, {stalling} of them stalled for {seconds} s, {rate} events/s, \
         {runs} runs, nothing lost, no watch ended"
    );
    println!("  delay p99 of the others, all reading, ms  {calm}");
    println!("  delay p99 of the others, ms               {disturbed}");
    println!(
        "  the second over the first                 {} (goal: at most 1.05)",
        disturbed.over(&calm)
    );
    println!(
        "  ratio of the medians                      {:.3}",
        disturbed.median() / calm.median()
    );
    println!("  the stalled have caught up after, ms      {caught_up}");
    Ok(())
}
