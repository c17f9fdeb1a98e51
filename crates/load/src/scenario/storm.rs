//! Many clients begin at once: each lists everything and watches from there, or asks for a watch
//! that begins with everything.

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::baseline::Baseline;
use super::delivery::{CREATORS, Delivery};
use super::parameters::ObjectFlags;
use super::phases::add_client;
use super::receivers::LATE_MAX;
use crate::client::{Client, ClientError, ClientRequest, Encoding, EventKind, ListHead, Watch};
use crate::context::{Context, Length};
use crate::error::LoadError;
use crate::measure::{Gauges, Latencies, Recorder};
use crate::outcome::Run;
use crate::payload::Stamp;
use crate::schedule::Schedule;
use crate::time::{nanos, now};
use crate::units::{mebibytes, millis};

/// A run takes as long as it takes.
pub(crate) const DEFAULT_LENGTH: Length = Length {
    runs: 3,
    duration: Duration::from_secs(5),
    warm_up: Duration::ZERO,
};
/// The most failed clients that are shown in full.
const FAULTS_SHOWN_MAX: usize = 5;

/// Clients that list everything and watch from there, all at once, in both ways that there are.
#[derive(Args, Clone, Debug, Serialize)]
pub(crate) struct StormFlags {
    /// Number of clients.
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: u32,

    #[command(flatten)]
    #[serde(flatten)]
    objects: ObjectFlags,

    /// Way in which clients begin: list, watch-list or both.
    #[arg(
        long,
        value_name = "WAY",
        default_value = "both",
        hide_possible_values = true
    )]
    way: Ways,
}

/// The ways that are measured, as the flag has them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ways {
    List,
    WatchList,
    Both,
}

/// The way in which a client comes to know all objects.
#[derive(Clone, Copy, Debug)]
enum Way {
    List,
    WatchList,
}

impl Ways {
    fn all(self) -> &'static [Way] {
        match self {
            Self::List => &[Way::List],
            Self::WatchList => &[Way::WatchList],
            Self::Both => &[Way::List, Way::WatchList],
        }
    }
}

impl Way {
    /// Returns the name in figures.
    fn name(self) -> &'static str {
        match self {
            Self::List => "list+watch",
            Self::WatchList => "watch-list",
        }
    }
}

pub(crate) async fn run(context: &Context, flags: &StormFlags) -> Result<Vec<Run>, LoadError> {
    let mut delivery = Delivery::prepare_to_read(context, &flags.objects).await?;
    delivery.idle(context.length.duration).await;
    let mut runs = Vec::new();
    for what in context.length.names() {
        let mut run = Run::default();
        for way in flags.way.all() {
            storm(&mut delivery, flags, *way, &what, &mut run).await?;
        }
        runs.push(run);
    }
    Ok(runs)
}

/// Lets all clients begin at once, then writes once more, which each must get as its first event.
async fn storm(
    delivery: &mut Delivery<'_>,
    flags: &StormFlags,
    way: Way,
    what: &str,
    run: &mut Run,
) -> Result<(), LoadError> {
    let name = way.name();
    let recorder = Arc::new(Recorder::default());
    let gauges = Gauges {
        recorders: vec![Arc::clone(&recorder)],
        ..Gauges::default()
    };
    let clients = u64::from(flags.clients);
    let start = Arc::new(Barrier::new(flags.clients as usize + 1));
    let mut joining = JoinSet::new();
    for _ in 0..flags.clients {
        let informer = Informer {
            client: delivery.context.client.clone(),
            collection: delivery.objects.collection.clone(),
            encoding: delivery.context.flags.encoding,
            objects: delivery.objects.count as usize,
            way,
        };
        let (start, recorder) = (Arc::clone(&start), Arc::clone(&recorder));
        joining.spawn(async move {
            start.wait().await;
            let from = now();
            let synced = informer.sync().await;
            recorder.record(synced.is_ok().then(|| nanos(from.elapsed())), 0);
            synced
        });
    }
    let syncing = async {
        start.wait().await;
        joining.join_all().await
    };
    let context = delivery.context;
    let (synced, seen) = context.observe(what, clients, &gauges, syncing).await;
    let (mut watches, mut faults) = (Vec::new(), Vec::new());
    for synced in synced {
        match synced {
            Ok(watch) => watches.push(watch),
            Err(why) => faults.push(format!("{name}: {why}")),
        }
    }
    run.expected += clients;
    run.received += watches.len() as u64;
    faults.truncate(FAULTS_SHOWN_MAX);
    run.faults.extend(faults);
    let cpu = Baseline::beyond(delivery.baseline(), &seen, 0);
    add_figures(run, name, &seen.latencies, cpu, clients as f64);
    if let Some(rss) = seen.server_rss {
        run.lower(&format!("{name} server memory"), "MiB", mebibytes(rss));
    }
    run.lower(
        &format!("{name} all synced"),
        "s",
        seen.elapsed.as_secs_f64(),
    );
    let client = format!("{name} client CPU");
    add_client(run, &client, seen.client_cpu, seen.elapsed, context);
    let before = run.seconds;
    run.series.extend(seen.series.into_iter().map(|mut second| {
        second.at += before;
        second
    }));
    run.seconds += seen.elapsed.as_secs_f64();
    let faults = follow_up(delivery, watches).await?;
    run.faults
        .extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
    Ok(())
}

fn add_figures(
    run: &mut Run,
    name: &str,
    latencies: &Latencies,
    cpu: Option<Duration>,
    clients: f64,
) {
    for (told, percentile) in [("p50", 50.0), ("p99", 99.0)] {
        if let Some(value) = latencies.at(percentile) {
            run.lower(&format!("{name} {told}"), "ms", value);
        }
    }
    if let Some(cpu) = cpu {
        let each = millis(cpu) / clients;
        run.lower(&format!("{name} server CPU per client"), "ms", each);
    }
}

/// Writes to some objects once: these writes must be the first events that every client gets, each
/// once.
async fn follow_up(
    delivery: &mut Delivery<'_>,
    watches: Vec<InformedClient>,
) -> Result<Vec<String>, LoadError> {
    let wanted = delivery.writers.next().first().copied().unwrap_or_default();
    let objects = CREATORS.min(delivery.objects.count);
    let schedule = || Schedule::bursts(objects, Duration::ZERO);
    let writing = delivery.observe("following up", schedule, u64::from(objects));
    writing.await?;
    let mut faults = Vec::new();
    let mut following = JoinSet::new();
    for mut watch in watches {
        let objects = objects as usize;
        following.spawn(async move {
            let following = watch.follow(objects, wanted);
            let followed = tokio::time::timeout(LATE_MAX, following).await;
            followed.unwrap_or_else(|_| Err("not all events came in time".to_owned()))
        });
    }
    for followed in following.join_all().await {
        if let Err(why) = followed
            && faults.len() < FAULTS_SHOWN_MAX
        {
            faults.push(why);
        }
    }
    Ok(faults)
}

/// A client that wants to know everything.
struct Informer {
    client: Client,
    collection: String,
    encoding: Encoding,
    objects: usize,
    way: Way,
}

/// A client that knows everything, and its watch.
struct InformedClient(Watch);

impl Informer {
    async fn sync(&self) -> Result<InformedClient, String> {
        let synced = match self.way {
            Way::List => self.list_and_watch().await,
            Way::WatchList => self.watch_list().await,
        };
        let (watch, found) = synced.map_err(|error| error.to_string())?;
        if found == self.objects {
            return Ok(InformedClient(watch));
        }
        Err(format!("{found} objects of {}", self.objects))
    }

    async fn list_and_watch(&self) -> Result<(Watch, usize), ClientError> {
        let mut connection = self.client.connect().await?;
        let list = ClientRequest::get(format!("{}?resourceVersion=0", self.collection));
        let answer = connection.request(list.accepting(self.encoding)).await?;
        let list = answer.success()?;
        let head = ListHead::read(&list, self.encoding);
        let head = head.ok_or(ClientError::Malformed("a list without a version"))?;
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={}",
            self.collection, head.revision
        );
        let watch = connection.watch(&path, self.encoding).await?;
        Ok((watch, Stamp::count(&list)))
    }

    async fn watch_list(&self) -> Result<(Watch, usize), ClientError> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true\
             &resourceVersionMatch=NotOlderThan",
            self.collection
        );
        let mut watch = self.client.watch(&path, self.encoding).await?;
        let (mut found, mut is_whole, mut failure) = (0, false, None);
        let reading = async {
            while !is_whole {
                let goes_on = watch
                    .read(|event| match event.kind {
                        EventKind::Added => {
                            found += usize::from(Stamp::find(event.object).is_some())
                        }
                        EventKind::Bookmark => is_whole |= event.ends_initial_events(),
                        EventKind::Error => failure = Some(event.failure()),
                        EventKind::Modified | EventKind::Deleted => {
                            failure = Some(ClientError::Malformed("a change among initial events"));
                        }
                    })
                    .await?;
                if let Some(failure) = failure.take() {
                    return Err(failure);
                }
                if !goes_on {
                    return Err(ClientError::Malformed("a watch that ended early"));
                }
            }
            Ok(())
        };
        let read = tokio::time::timeout(LATE_MAX, reading).await;
        read.unwrap_or(Err(ClientError::Timeout(LATE_MAX)))?;
        Ok((watch, found))
    }
}

impl InformedClient {
    /// Reads one event of every object; each must be of the write with this number.
    async fn follow(&mut self, objects: usize, wanted: u32) -> Result<(), String> {
        let mut seen = vec![false; objects];
        let (mut left, mut fault) = (objects, None);
        while left > 0 && fault.is_none() {
            let goes_on = self.0.read(|event| {
                let Some(stamp) = Stamp::find(event.object) else {
                    return;
                };
                let place = seen.get_mut(stamp.object as usize);
                if stamp.number != wanted || place.is_none_or(|seen| std::mem::replace(seen, true))
                {
                    let (object, number) = (stamp.object, stamp.number);
                    fault.get_or_insert_with(|| format!("event {number} of object {object}"));
                } else {
                    left -= 1;
                }
            });
            match goes_on.await {
                Ok(true) => {}
                Ok(false) => return Err("a watch ended".to_owned()),
                Err(error) => return Err(error.to_string()),
            }
        }
        fault.map_or(Ok(()), |fault| {
            Err(format!("{fault} in the place of {wanted}"))
        })
    }
}
