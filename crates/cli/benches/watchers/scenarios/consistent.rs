//! Consistent lists while others write: how late they are, beside a linearizable read of one key of
//! the same etcd, and beside the same list from the cache as it is, which needs no probe.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::api::{Api, Line};
use crate::event::Fields;
use crate::objects::{Kind, Objects};
use crate::protocol::Delay;
use crate::server::Server;
use crate::writer::Writer;
use crate::{Failed, Settings};
use ringwatch_testing::etcd::Etcd;

/// So many objects are written to.
const OBJECTS: usize = 32;
/// So many of them are listed.
const LISTED: usize = 10;
/// So many connections write.
const CONNECTIONS: usize = 16;
/// So many reads of each kind a second.
const READS_PER_SECOND: u32 = 50;

pub(super) async fn run(settings: &Settings) -> Result<(), Failed> {
    // etcd as it is run in earnest: what is acknowledged is on disk.
    let etcd = Etcd::start_with("watchers consistent", None, &["--unsafe-no-fsync=false"]);
    if let Some(etcd) = &etcd {
        over(settings, Some(etcd)).await?;
    }
    over(settings, None).await
}

async fn over(settings: &Settings, etcd: Option<&Etcd>) -> Result<(), Failed> {
    let rate = settings.rate(500, 50);
    let seconds = settings.seconds(20, 1);
    let runs = settings.runs(5, 1);
    let server = Server::start(settings, etcd).await?;
    let api = server.api()?;
    let objects = Objects::create(&api, Kind::ConfigMaps, OBJECTS).await?;
    let mut writer = Writer::connect(&api, CONNECTIONS, &objects.paths, 1).await?;
    let store = if etcd.is_some() { "etcd" } else { "embedded" };
    println!(
        "consistent lists of {LISTED} objects over {store}: {rate} writes/s, \
         {READS_PER_SECOND} reads/s, {runs} runs of {seconds} s"
    );
    let path = format!("{}?limit={LISTED}", objects.kind.collection());
    let cached = format!("{path}&resourceVersion=0");
    let reads = seconds * u64::from(READS_PER_SECOND);
    for _ in 0..runs {
        let acknowledged = writer.acknowledged();
        let (written, consistent, stale, floor) = tokio::join!(
            writer.write(rate * seconds, rate),
            lists(&api, &path, reads, Some(acknowledged)),
            lists(&api, &cached, reads, None),
            ranges(etcd, reads),
        );
        let (written, consistent, stale) = (written?, consistent?, stale?);
        let told = |name: &str, delay: Delay| {
            let [p50, p99, max] =
                [delay.p50, delay.p99, delay.max].map(|micros| f64::from(micros) / 1e3);
            println!("  {name:<28} p50 {p50:>7.2}  p99 {p99:>7.2}  max {max:>7.2} ms");
        };
        told("consistent list", consistent);
        told("list from the cache", stale);
        if let Some(floor) = floor? {
            told("etcd, linearizable range", floor);
            let above = (f64::from(consistent.p99) - f64::from(floor.p99)) / 1e3;
            println!("  p99 above the round trip     {above:.2} ms (goal: at most 10)");
        }
        let late = written.as_secs_f64() - Duration::from_secs(seconds).as_secs_f64();
        println!("  the writes took {late:.2} s longer than planned");
    }
    Ok(())
}

/// The delays of reads on a schedule.
async fn paced(
    reads: u64,
    mut read: impl AsyncFnMut() -> Result<(), Failed>,
) -> Result<Delay, Failed> {
    let start = SystemTime::now();
    let mut delays = Vec::new();
    for number in 0..reads {
        let due = start + Duration::from_secs(1) / READS_PER_SECOND * u32::try_from(number + 1)?;
        tokio::time::sleep(due.duration_since(SystemTime::now()).unwrap_or_default()).await;
        read().await?;
        let delay = SystemTime::now().duration_since(due).unwrap_or_default();
        delays.push(u32::try_from(delay.as_micros())?);
    }
    Ok(Delay::of(&mut delays))
}

/// Lists on a schedule. With `acknowledged`, no list may be older than that was when it was asked
/// for.
async fn lists(
    api: &Api,
    path: &str,
    reads: u64,
    acknowledged: Option<Arc<Mutex<u64>>>,
) -> Result<Delay, Failed> {
    let mut line: Line = api.connect().await?;
    let fields = Fields::new();
    let read = async || {
        let least = acknowledged
            .as_ref()
            .map(|it| *it.lock().expect("no panic"));
        let list = line.get(path).await?;
        let revision = fields.revision(&list).ok_or("a list without a version")?;
        if least.is_some_and(|least| revision < least) {
            return Err(format!("a consistent list at {revision}, written was {least:?}").into());
        }
        Ok(())
    };
    paced(reads, read).await
}

/// Linearizable reads of one key of etcd on a schedule.
async fn ranges(etcd: Option<&Etcd>, reads: u64) -> Result<Option<Delay>, Failed> {
    let Some(etcd) = etcd else {
        return Ok(None);
    };
    let mut client = etcd_client::Client::connect([etcd.endpoint()], None).await?;
    let read = async || {
        client.get("/registry/one", None).await?;
        Ok(())
    };
    paced(reads, read).await.map(Some)
}
