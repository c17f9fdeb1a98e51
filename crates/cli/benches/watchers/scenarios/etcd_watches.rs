//! Watches of etcd itself, without a server in between: every event goes to all of them, as in
//! `fanout-h2`. This is what clients would cost that followed etcd directly, each by an RPC of its
//! own and 100 of them a connection, without TLS.

use std::time::{Duration, SystemTime};

use etcd_client::{Client, WatchStream};
use futures::future::try_join_all;

use super::{LATE_SECONDS_MAX, STREAMS};
use crate::figures::Series;
use crate::process::Cpu;
use crate::{Failed, Settings};
use ringwatch_testing::etcd::Etcd;

/// The key that is written, and the length of its values.
const KEY: &str = "/registry/configmaps/default/one";
const VALUE_BYTES: usize = 1_024;

pub(super) async fn run(settings: &Settings) -> Result<(), Failed> {
    let Some(etcd) = Etcd::start_with("watchers etcd", None, &["--unsafe-no-fsync=false"]) else {
        return Ok(());
    };
    let watches = settings.watchers(5_000, 20);
    let rate = settings.rate(10, 50);
    let seconds = settings.seconds(20, 1);
    let runs = settings.runs(5, 1);
    let mut streams = open(&etcd, watches).await?;
    let mut writer = Client::connect([etcd.endpoint()], None).await?;
    let mut cpu = Series::default();
    for _ in 0..runs {
        let before = Cpu::of(etcd.pid());
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let idle = Cpu::of(etcd.pid()) - before;
        let before = Cpu::of(etcd.pid());
        let events = rate * seconds;
        let received = try_join_all(streams.iter_mut().map(|it| receive(it, events)));
        let limit = Duration::from_secs(seconds + LATE_SECONDS_MAX);
        let (written, received) = tokio::join!(
            write(&mut writer, events, rate),
            tokio::time::timeout(limit, received),
        );
        written?;
        received??;
        let spent = (Cpu::of(etcd.pid()) - before - idle).all.as_secs_f64() * 1e6;
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        cpu.push(spent / (events * watches as u64) as f64);
    }
    println!(
        "etcd: {watches} watches of its own, {VALUE_BYTES} bytes a value, {rate} events/s, \
         {runs} runs of {seconds} s, nothing lost"
    );
    println!("  etcd   CPU a delivery, us         {cpu}");
    Ok(())
}

async fn open(etcd: &Etcd, watches: usize) -> Result<Vec<WatchStream>, Failed> {
    let mut streams = Vec::with_capacity(watches);
    while streams.len() < watches {
        let mut client = Client::connect([etcd.endpoint()], None).await?;
        for _ in 0..STREAMS.min(watches - streams.len()) {
            streams.push(client.watch(KEY, None).await?);
        }
    }
    Ok(streams)
}

/// Writes on a schedule.
async fn write(client: &mut Client, events: u64, rate: u64) -> Result<(), Failed> {
    let start = SystemTime::now();
    for event in 0..events {
        let due = start + Duration::from_micros(1_000_000 * (event + 1) / rate);
        tokio::time::sleep(due.duration_since(SystemTime::now()).unwrap_or_default()).await;
        client.put(KEY, vec![b'x'; VALUE_BYTES], None).await?;
    }
    Ok(())
}

/// Takes so many events, each with a later revision than the one before.
async fn receive(stream: &mut WatchStream, events: u64) -> Result<(), Failed> {
    let (mut received, mut revision) = (0, 0);
    while received < events {
        let answer = stream.message().await?.ok_or("a watch of etcd ended")?;
        for event in answer.events() {
            let version = event.kv().ok_or("an event without a key")?.mod_revision();
            if version <= revision {
                return Err(format!("{version} came after {revision}").into());
            }
            (received, revision) = (received + 1, version);
        }
    }
    Ok(())
}
