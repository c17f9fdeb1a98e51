//! Observes a run second by second: events, latencies, processor time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::latency::{Latencies, Recorder};
use super::process::{Usage, own_cpu};
use super::server::Probe;
use crate::outcome::Second;
use crate::output::ProgressLine;
use crate::time::{Instant, now};

/// The time between two updates of the shown progress, and the number of updates in a second of the series.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const LOOKS_A_SECOND: u32 = 4;

/// The counters that are looked at while a run goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    /// The recorders of events or answers.
    pub(crate) recorders: Vec<Arc<Recorder>>,
    /// The number of writes or requests that were answered.
    pub(crate) sent: Arc<AtomicUsize>,
}

/// The measurements of one run: time, latencies, counts, processor time and memory.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) elapsed: Duration,
    pub(crate) latencies: Latencies,
    pub(crate) received: u64,
    pub(crate) bytes: u64,
    /// The server's processor time, if it is known.
    pub(crate) server_cpu: Option<Duration>,
    /// The most memory that the server was seen with.
    pub(crate) server_rss: Option<u64>,
    pub(crate) client_cpu: Duration,
    pub(crate) series: Vec<Second>,
}

impl Gauges {
    /// Sets all counts to zero, as a run begins.
    pub(crate) fn clear(&self) {
        for recorder in &self.recorders {
            recorder.lock().clear();
        }
        self.sent.store(0, Ordering::Relaxed);
    }

    /// Returns how many events or answers the run has had.
    pub(crate) fn received(&self) -> u64 {
        let received = self.recorders.iter().map(|it| it.lock().received);
        received.sum()
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed) as u64
    }
}

/// Does something and watches what comes of it. `expected` is for the progress.
pub(crate) async fn observe<T>(
    gauges: &Gauges,
    probe: &Probe,
    progress: &ProgressLine,
    doing: impl Future<Output = T>,
) -> (T, Observation) {
    gauges.clear();
    let before = probe.usage().await;
    let mut looking = Looking::start(gauges, probe, before);
    let mut doing = std::pin::pin!(doing);
    let mut ticks = tokio::time::interval_at(now() + LOOK_EVERY, LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut looks = 0;
    let result = loop {
        tokio::select! {
            biased;
            result = &mut doing => break result,
            _ = ticks.tick() => {
                looks += 1;
                if looks % LOOKS_A_SECOND == 0 {
                    looking.look();
                }
                progress.show(gauges.sent(), gauges.received());
            }
        }
    };
    let elapsed = looking.start.elapsed();
    looking.look();
    let after = probe.usage().await;
    let server_cpu = before
        .zip(after)
        .map(|(before, after)| after.cpu.saturating_sub(before.cpu));
    let mut latencies = Latencies::default();
    let (mut received, mut bytes) = (0, 0);
    for recorder in &gauges.recorders {
        let recorded = recorder.lock();
        latencies.add(&recorded.all());
        received += recorded.received;
        bytes += recorded.bytes;
    }
    let observation = Observation {
        elapsed,
        latencies,
        received,
        bytes,
        server_cpu,
        server_rss: looking.rss_max.max(after.map(|after| after.rss)),
        client_cpu: own_cpu().saturating_sub(looking.client_first),
        series: looking.series,
    };
    (result, observation)
}

/// The counts at the last look, from which the next one takes the difference.
struct Looking<'a> {
    gauges: &'a Gauges,
    probe: &'a Probe,
    start: Instant,
    last: Instant,
    sent: u64,
    received: u64,
    server: Option<Usage>,
    rss_max: Option<u64>,
    client_first: Duration,
    client: Duration,
    series: Vec<Second>,
}

impl<'a> Looking<'a> {
    fn start(gauges: &'a Gauges, probe: &'a Probe, before: Option<Usage>) -> Self {
        let start = now();
        let client = own_cpu();
        Self {
            gauges,
            probe,
            start,
            last: start,
            sent: 0,
            received: 0,
            server: probe.usage_for_free(),
            rss_max: before.map(|before| before.rss),
            client_first: client,
            client,
            series: Vec::new(),
        }
    }

    /// Adds to the series what came since the last look.
    fn look(&mut self) {
        let now = now();
        let seconds = (now - self.last).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        let mut fresh = Latencies::default();
        let mut received = 0;
        for recorder in &self.gauges.recorders {
            let mut recorded = recorder.lock();
            recorded.look(&mut fresh);
            received += recorded.received;
        }
        let sent = self.gauges.sent();
        let server = self.probe.usage_for_free();
        let client = own_cpu();
        let cores = |after: Duration, before: Duration| {
            after.saturating_sub(before).as_secs_f64() / seconds
        };
        self.series.push(Second {
            at: (now - self.start).as_secs_f64(),
            sent: sent.saturating_sub(self.sent),
            received: received.saturating_sub(self.received),
            p50_ms: fresh.at(50.0),
            p99_ms: fresh.at(99.0),
            server_cpu: self
                .server
                .zip(server)
                .map(|(before, after)| cores(after.cpu, before.cpu)),
            server_rss: server.map(|server| server.rss),
            client_cpu: cores(client, self.client),
        });
        self.rss_max = self.rss_max.max(server.map(|server| server.rss));
        (self.last, self.sent, self.received) = (now, sent, received);
        (self.server, self.client) = (server, client);
    }
}
