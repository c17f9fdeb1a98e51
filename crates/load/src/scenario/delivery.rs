//! The common parts of scenarios with writers and watchers: a run, its figures, and the check that every watcher got
//! every event once and in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::baseline::Baseline;
use super::floor_runs::FloorRuns;
use super::parameters::{ObjectFlags, SizeFlags, WriteFlags};
use super::phases::Phases;
use super::receivers::{DeliveryResult, Receivers, Turns};
use crate::context::{Context, Length};
use crate::error::LoadError;
use crate::fleet::{Fleet, Sees, ThreadLoad, WatchSpec, WatcherGroup};
use crate::measure::{Gauges, Observation};
use crate::outcome::Run;
use crate::payload::ObjectKind;
use crate::schedule::Schedule;
use crate::units::{mebibytes, micros};
use crate::writer::{LATENESS_MS_MAX, Objects, Writers};

/// The length of most scenarios: some 50 seconds in all.
pub(crate) const DEFAULT_LENGTH: Length = Length {
    runs: 5,
    duration: Duration::from_secs(8),
    warm_up: Duration::from_secs(2),
};

/// The number of connections that create objects to be read.
pub(super) const CREATORS: u32 = 8;

/// Writers, watchers, and what they are measured by.
pub(super) struct Delivery<'a> {
    pub(super) context: &'a Context,
    pub(super) fleet: Fleet,
    pub(super) groups: Vec<Arc<WatcherGroup>>,
    pub(super) writers: Writers,
    pub(super) objects: Objects,
    /// The revision from which a watch gets every later event, of which this is each object's first.
    revision: u64,
    next: u32,
    baseline: Option<Baseline>,
}

impl<'a> Delivery<'a> {
    /// Creates config maps to write to, one for each writer, with nobody who watches.
    pub(super) async fn prepare(
        context: &'a Context,
        flags: &WriteFlags,
    ) -> Result<Self, LoadError> {
        Self::prepare_objects(context, ObjectKind::ConfigMaps, flags, flags.writers).await
    }

    /// Creates as many config maps to be read as the flags say.
    pub(super) async fn prepare_to_read(
        context: &'a Context,
        flags: &ObjectFlags,
    ) -> Result<Self, LoadError> {
        let writes = WriteFlags {
            writers: CREATORS,
            size: flags.size.clone(),
        };
        Self::prepare_objects(context, ObjectKind::ConfigMaps, &writes, flags.objects).await
    }

    /// Creates `count` objects of a kind, as large as the flags say, with nobody who watches.
    pub(super) async fn prepare_objects(
        context: &'a Context,
        kind: ObjectKind,
        WriteFlags { writers, size }: &WriteFlags,
        count: u32,
    ) -> Result<Self, LoadError> {
        let SizeFlags { size } = *size;
        let (payload, bytes) = context.payload(kind, size).await?;
        let objects = Objects {
            kind,
            collection: context.workspace.collection(kind),
            count,
            payload,
            bytes,
        };
        let writers = Writers::create(&context.client, *writers, &objects).await?;
        Ok(Self {
            context,
            fleet: context.fleet()?,
            groups: Vec::new(),
            revision: context.revision(kind).await?,
            next: 1,
            writers,
            objects,
            baseline: None,
        })
    }

    /// Lets watchers that are opened from here on begin with what is written from here on. All objects must have had
    /// as many writes.
    pub(super) async fn begin_anew(&mut self) -> Result<(), LoadError> {
        self.revision = self.context.revision(self.objects.kind).await?;
        self.next = self.writers.next().first().copied().unwrap_or(1);
        Ok(())
    }

    /// Returns the request of so many watchers of the collection, for callers that change a part of it.
    pub(super) fn spec(&self, watchers: u32, sees: Sees) -> WatchSpec {
        let collection = self.objects.collection.clone();
        WatchSpec {
            watchers: watchers as usize,
            path: Box::new(move |_| format!("{collection}?watch=true&allowWatchBookmarks=true")),
            encoding: self.context.flags.encoding,
            sees,
            revision: self.revision,
            next: self.next,
            resumes: false,
        }
    }

    /// Opens watchers of all objects and waits until they watch.
    pub(super) async fn watch_all(
        &mut self,
        watchers: u32,
    ) -> Result<Arc<WatcherGroup>, LoadError> {
        let spec = self.spec(watchers, Sees::All(self.objects.count));
        self.watch(spec).await
    }

    /// Opens watchers as [`Self::watch_all`] does, who go on where they were when their watches end.
    pub(super) async fn watch_all_and_resume(
        &mut self,
        watchers: u32,
    ) -> Result<Arc<WatcherGroup>, LoadError> {
        let mut spec = self.spec(watchers, Sees::All(self.objects.count));
        spec.resumes = true;
        self.watch(spec).await
    }

    /// Opens watchers and waits until they watch.
    pub(super) async fn watch(&mut self, spec: WatchSpec) -> Result<Arc<WatcherGroup>, LoadError> {
        let opening = self.fleet.open(spec);
        let gauges = Gauges::default();
        let (group, _) = self
            .context
            .observe("connecting", 0, &gauges, opening)
            .await;
        let group = group?;
        self.groups.push(Arc::clone(&group));
        Ok(group)
    }

    /// Returns how many events so many writes to all objects in turn make for these groups.
    fn events_of(&self, groups: &[Arc<WatcherGroup>], writes: u64) -> u64 {
        let count = u64::from(self.objects.count);
        let each = writes / count;
        let rest = writes % count;
        let events = (0..self.objects.count).map(|object| {
            let turns = each + u64::from(u64::from(object) < rest);
            turns * watchers_of(groups, object)
        });
        events.sum()
    }

    /// Loads the server so that all is as it will be. Whatever is lost here fails the first run.
    pub(super) async fn warm_up(&mut self, rate: f64) -> Result<(), LoadError> {
        let writes = Schedule::writes(rate, self.context.length.warm_up);
        if writes > 0 {
            let schedule = || Schedule::steady(rate);
            self.observe("warming up", schedule, writes).await?;
        }
        Ok(())
    }

    /// Warms up, measures the baseline and all runs, each with that against the floor if there is to be one, and
    /// closes.
    pub(super) async fn measure(
        &mut self,
        rate: f64,
        mut floor: FloorRuns,
    ) -> Result<Vec<Run>, LoadError> {
        let schedule = || Schedule::steady(rate);
        self.warm_up(rate).await?;
        let warm_up = Turns::one(Schedule::writes(rate, self.context.length.warm_up));
        floor.warm_up(self.context, warm_up, schedule).await?;
        let length = self.context.length;
        self.idle(length.duration).await;
        let writes = Schedule::writes(rate, length.duration);
        let mut runs = Vec::new();
        for what in length.names() {
            let delivered = self.observe(&what, schedule, writes).await?;
            let mut run = self.assess(delivered);
            let turns = Turns::one(writes);
            floor
                .measure(
                    self.context,
                    self.writers.next(),
                    &what,
                    turns,
                    schedule,
                    &mut run,
                )
                .await?;
            runs.push(run);
        }
        self.close(&mut runs).await?;
        Ok(runs)
    }

    /// Measures what the server uses with nothing to do.
    pub(super) async fn idle(&mut self, duration: Duration) {
        let idle = tokio::time::sleep(duration);
        let gauges = Gauges::default();
        let ((), seen) = self.context.observe("baseline", 0, &gauges, idle).await;
        self.baseline = Baseline::of(&seen, 0);
    }

    /// Measures what the server uses with nothing to do but so many writes per second, if there are to be any.
    pub(super) async fn idle_beside_writes(
        &mut self,
        rate: Option<f64>,
        duration: Duration,
    ) -> Result<(), LoadError> {
        let context = self.context;
        let gauges = Gauges::default();
        let idle = async {
            let writing = self.write_for(rate, duration, &gauges.sent);
            let ((), written) = tokio::join!(tokio::time::sleep(duration), writing);
            written
        };
        let (written, seen) = context.observe("baseline", 0, &gauges, idle).await;
        let sent = gauges.sent.load(Ordering::Relaxed);
        self.baseline = Baseline::of(&seen, sent as u64);
        written
    }

    /// Writes at a steady rate for so long, if there is a rate, and counts in `sent` what was written. Warns if the
    /// writes were late.
    pub(super) async fn write_for(
        &mut self,
        rate: Option<f64>,
        duration: Duration,
        sent: &AtomicUsize,
    ) -> Result<(), LoadError> {
        let Some(rate) = rate else {
            return Ok(());
        };
        let writes = Schedule::writes(rate, duration);
        let schedule = Schedule::steady(rate);
        self.writers.begin();
        let (writers, objects) = (&mut self.writers, &self.objects);
        writers.write(objects, schedule, writes, sent).await?;
        if self.writers.late_ms().is_some() {
            // Without a figure, so that it is told once of all phases.
            self.context.warn(format!(
                "writes were sent more than {LATENESS_MS_MAX:.0} ms late (p99), so there were fewer of them during the \
                 lists than --write-rate says; the server does not keep up with so many"
            ));
        }
        Ok(())
    }

    /// Returns what the server needs with nothing to do, once that was measured.
    pub(super) fn baseline(&self) -> Option<Baseline> {
        self.baseline
    }

    /// Begins a run that is put together from phases, with the baseline measured before.
    pub(super) fn phases(&self) -> Phases {
        Phases::new(self.baseline)
    }

    /// Writes, and waits until all has come.
    pub(super) async fn observe(
        &mut self,
        what: &str,
        schedule: impl Fn() -> Schedule,
        writes: u64,
    ) -> Result<DeliveryResult, LoadError> {
        let groups = self.groups.clone();
        let turns = Turns::one(writes);
        self.observe_turns(what, &groups, schedule, turns).await
    }

    /// Writes turn by turn, and after each waits until these groups have got all of it.
    pub(super) async fn observe_turns(
        &mut self,
        what: &str,
        groups: &[Arc<WatcherGroup>],
        schedule: impl Fn() -> Schedule,
        turns: Turns,
    ) -> Result<DeliveryResult, LoadError> {
        let events = self.events_of(groups, turns.writes);
        self.writers.begin();
        let (writers, objects) = (&mut self.writers, &self.objects);
        let receivers = Receivers {
            context: self.context,
            fleet: &self.fleet,
            groups,
        };
        let write = async |schedule, sent: &AtomicUsize| {
            writers.write(objects, schedule, turns.writes, sent).await
        };
        receivers
            .observe(what, turns, events, schedule, write)
            .await
    }

    /// Returns the run of what was delivered to all groups: figures, faults, series. Warns if the figures are
    /// doubtful.
    pub(super) fn assess(&self, delivered: DeliveryResult) -> Run {
        self.doubt(&delivered);
        let DeliveryResult {
            expected,
            seen,
            threads,
            ..
        } = delivered;
        let mut run = Run {
            seconds: seen.elapsed.as_secs_f64(),
            expected,
            received: seen.received,
            latency: seen.latencies.curve(),
            faults: self.faults(),
            ..Run::default()
        };
        self.add_figures(&mut run, &seen, &threads);
        run.series = seen.series;
        run
    }

    /// Returns the faults since the last call.
    pub(super) fn faults(&self) -> Vec<String> {
        let next = self.writers.next();
        let faults = self.groups.iter().flat_map(|group| group.take_faults(next));
        faults.collect()
    }

    fn add_figures(&self, run: &mut Run, seen: &Observation, threads: &ThreadLoad) {
        for percentile in [50.0, 90.0, 99.0, 99.9, 100.0] {
            if let Some(value) = seen.latencies.at(percentile) {
                run.lower(
                    &format!("delivery {}", percentile_name(percentile)),
                    "ms",
                    value,
                );
            }
        }
        let received = seen.received.max(1) as f64;
        let rate = received / run.seconds.max(f64::MIN_POSITIVE);
        run.higher("deliveries", "1/s", rate);
        run.note("event size", "bytes", seen.bytes as f64 / received);
        let answers = self.writers.answers.lock().all();
        for percentile in [50.0, 99.0] {
            if let Some(value) = answers.at(percentile) {
                run.lower(
                    &format!("write {}", percentile_name(percentile)),
                    "ms",
                    value,
                );
            }
        }
        add_usage(run, seen, self.baseline, "delivery", received);
        if let Some(lag) = threads.lag.at(99.0) {
            run.note("client lag p99", "ms", lag);
        }
    }

    /// Warns of what makes the figures doubtful.
    fn doubt(&self, delivered: &DeliveryResult) {
        delivered.doubt_client(self.context);
        if let Some(late) = self.writers.late_ms() {
            self.context.warn(format!(
                "writes were sent up to {late:.0} ms late (p99), which is part of the latencies; \
                 the server does not keep up, or there are too few --writers"
            ));
        }
    }

    /// Makes one more write to each object, behind which nothing of the runs can be on its way. What
    /// comes twice shows here at the latest, and is charged to the last run.
    pub(super) async fn close(&mut self, runs: &mut [Run]) -> Result<(), LoadError> {
        let at_once = self.objects.count;
        let schedule = || Schedule::bursts(at_once, Duration::ZERO);
        let closing = self.observe("closing", schedule, u64::from(at_once));
        let closing = closing.await?;
        let (expected, received) = (closing.expected, closing.seen.received);
        let mut faults = self.faults();
        if received != expected && faults.is_empty() {
            faults.push(format!(
                "{received} events of {expected} after the last run"
            ));
        }
        if let Some(last) = runs.last_mut() {
            last.faults.extend(faults);
        }
        Ok(())
    }
}

/// Returns how many watchers see a write to an object.
fn watchers_of(groups: &[Arc<WatcherGroup>], object: u32) -> u64 {
    let seeing = groups.iter().map(|group| match group.spec.sees {
        Sees::All(_) => group.watchers() as u64,
        Sees::Own => u64::from((object as usize) < group.watchers()),
    });
    seeing.sum()
}

/// Adds the usage of the server and the client, and the server's processor time for each of so many operations.
pub(super) fn add_usage(
    run: &mut Run,
    seen: &Observation,
    baseline: Option<Baseline>,
    each: &str,
    count: f64,
) {
    let seconds = seen.elapsed.as_secs_f64();
    if let Some(busy) = Baseline::beyond(baseline, seen, 0) {
        let per_each = micros(busy) / count;
        run.lower(&format!("server CPU per {each}"), "us", per_each);
        let cores = busy.as_secs_f64() / seconds.max(f64::MIN_POSITIVE);
        run.lower("server CPU", "cores", cores);
    }
    if let Some(rss) = seen.server_rss {
        run.lower("server memory", "MiB", mebibytes(rss));
    }
    let client = micros(seen.client_cpu) / count;
    run.note(&format!("client CPU per {each}"), "us", client);
}

/// Returns the name of a percentile in figures: `p50`, `p99.9`, `max`.
pub(super) fn percentile_name(percentile: f64) -> String {
    if percentile >= 100.0 {
        return "max".to_owned();
    }
    format!("p{percentile}")
}
