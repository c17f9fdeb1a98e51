//! The watchers of a load, thousands of them, and the check that each of them got what it must.
//!
//! A fleet is a few threads with a runtime each; a watcher is a task on one of them and stays
//! there, so that what it touches is touched by one processor. Watchers that behave alike are a
//! group, which keeps what they counted.

mod follow;
mod group;
mod position;
mod shared_connections;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{Semaphore, oneshot};

pub(crate) use group::{GroupMode, WatchSpec, WatcherGroup};
pub(crate) use position::Sees;

use super::client::{Client, HttpVersion};
use super::error::LoadError;
use super::measure::{Gauges, Latencies, Recorder, cpu, thread, watch_lag};
use super::time::now;
use shared_connections::SharedConnections;

/// The most connections of a fleet that are being opened at once.
const OPENING_MAX: usize = 64;
/// All watchers of a group must be watching within this time.
const OPENED_SECONDS_MAX: u64 = 180;
/// The time between two looks at a condition that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Threads for watchers. Dropping it closes all their connections.
#[derive(Debug)]
pub(crate) struct Fleet {
    client: Client,
    threads: Vec<Thread>,
    opening: Arc<Semaphore>,
    /// The number of watchers that share a connection over HTTP/2.
    streams: usize,
}

#[derive(Debug)]
struct Thread {
    handle: Handle,
    /// Its name under `/proc`, by which its processor time is read; `None` if `/proc` does not say.
    name: Option<String>,
    lag: Arc<Recorder>,
    /// Ends the thread when it is dropped.
    _stop: oneshot::Sender<()>,
}

/// The load of the threads of a fleet in a run: how busy and how late they were.
#[derive(Debug)]
pub(crate) struct ThreadLoad {
    /// Processor time of the busiest thread.
    pub(crate) busiest: Duration,
    pub(crate) lag: Latencies,
}

impl Fleet {
    /// Starts so many threads, at least one, without watchers. `streams` is how many watchers share a connection over
    /// HTTP/2.
    pub(crate) fn start(
        client: &Client,
        threads: usize,
        streams: usize,
    ) -> Result<Self, LoadError> {
        let threads = (0..threads.max(1)).map(|_| Thread::start());
        Ok(Self {
            client: client.clone(),
            threads: threads.collect::<Result<_, _>>()?,
            opening: Arc::new(Semaphore::new(OPENING_MAX)),
            streams: streams.max(1),
        })
    }

    /// Opens a group of watchers and waits until all of them watch.
    pub(crate) async fn open(&self, spec: WatchSpec) -> Result<Arc<WatcherGroup>, LoadError> {
        let group = self.begin(spec);
        let watchers = group.watchers();
        let at_most = Duration::from_secs(OPENED_SECONDS_MAX);
        // One that has failed is not waited for.
        until(at_most, || group.live() == watchers || group.has_faults()).await;
        if group.live() == watchers && !group.has_faults() {
            return Ok(group);
        }
        let why = format!(
            "{} of {watchers} do: {}",
            group.live(),
            group.first_faults().join("; ")
        );
        let what = "have all watchers watch".to_owned();
        Err(LoadError::UnexpectedAnswer { what, why })
    }

    /// Begins to open a group of watchers.
    pub(crate) fn begin(&self, spec: WatchSpec) -> Arc<WatcherGroup> {
        let group = Arc::new(WatcherGroup::new(spec, self.threads.len()));
        let shared = self.client.http() == HttpVersion::Two;
        let streams = if shared { self.streams } else { 1 };
        let connections = SharedConnections::new(group.watchers().div_ceil(streams));
        let connections = Arc::new(connections);
        for watcher in 0..group.watchers() {
            let follower = follow::Follower {
                client: self.client.clone(),
                group: Arc::clone(&group),
                watcher,
                shared: shared.then(|| (Arc::clone(&connections), watcher / streams)),
                opening: Arc::clone(&self.opening),
            };
            let thread = &self.threads[watcher % self.threads.len()];
            thread.handle.spawn(follower.run());
        }
        group
    }

    /// Returns the gauges to observe while these groups receive.
    pub(crate) fn gauges(groups: &[Arc<WatcherGroup>]) -> Gauges {
        let recorders = groups.iter().flat_map(|group| group.recorders());
        Gauges {
            recorders: recorders.collect(),
            ..Gauges::default()
        }
    }

    /// Does something and returns the load of the threads meanwhile.
    pub(crate) async fn measure_threads<T>(
        &self,
        doing: impl Future<Output = T>,
    ) -> (T, ThreadLoad) {
        for thread in &self.threads {
            thread.lag.lock().clear();
        }
        let before: Vec<_> = self.threads.iter().map(Thread::cpu).collect();
        let done = doing.await;
        let used = self.threads.iter().map(Thread::cpu).zip(before);
        let busiest = used
            .map(|(after, before)| after.saturating_sub(before))
            .max();
        let mut lag = Latencies::default();
        for thread in &self.threads {
            lag.add(&thread.lag.lock().all());
        }
        let busiest = busiest.unwrap_or_default();
        (done, ThreadLoad { busiest, lag })
    }
}

impl Thread {
    fn start() -> Result<Self, LoadError> {
        let failed = |error| LoadError::System {
            what: "start a thread",
            error,
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let lag = Arc::new(Recorder::default());
        let recorder = Arc::clone(&lag);
        let run = move || {
            // Nobody waits for it any more if this fails.
            let _ = tell.send(thread());
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = watch_lag(recorder) => {}
                }
            });
        };
        let builder = std::thread::Builder::new().name("watchers".to_owned());
        builder.spawn(run).map_err(failed)?;
        Ok(Self {
            handle,
            name: told.recv().ok().flatten(),
            lag,
            _stop: stop,
        })
    }

    fn cpu(&self) -> Duration {
        self.name.as_deref().and_then(cpu).unwrap_or_default()
    }
}

/// Waits until a condition holds, but at most so long.
pub(crate) async fn until(at_most: Duration, holds: impl Fn() -> bool) -> bool {
    let end = now() + at_most;
    while !holds() {
        if now() >= end {
            return false;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    true
}
