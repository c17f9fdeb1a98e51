//! Writes at their due times, over several connections, each with objects of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::try_join_all;

use super::client::{Client, Connection};
use super::error::LoadError;
use super::measure::Recorder;
use super::payload::{ObjectKind, Payload, Stamp};
use super::schedule::Schedule;
use super::time::{nanos, now, wall_nanos};

/// The most tries of a writer that persists, and the pause between them: a minute in all.
const TRIES_MAX: u32 = 600;
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Writes that are sent later than this say that the server does not keep up, or that there are too few writers.
pub(crate) const LATENESS_MS_MAX: f64 = 20.0;

/// The writers: connections, and the objects that each of them writes to.
#[derive(Debug)]
pub(crate) struct Writers {
    lanes: Vec<Lane>,
    /// The delays from the times at which writes were due until they were answered.
    pub(crate) answers: Arc<Recorder>,
    /// The delays from the times at which writes were due until they were sent. They are the client's own fault, or
    /// that of a server that is too slow for so few writers.
    lateness: Arc<Recorder>,
    /// The number of each object's next event.
    next: Vec<u32>,
}

/// A connection and the objects that only it writes to.
#[derive(Debug)]
struct Lane {
    client: Client,
    connection: Connection,
    persists: bool,
    /// The number of times that a write had to be repeated.
    repeated: u64,
}

/// The objects that are written.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    pub(crate) kind: ObjectKind,
    pub(crate) collection: String,
    pub(crate) count: u32,
    pub(crate) payload: Payload,
    /// The number of bytes that one takes on the wire, with all that the server adds to it.
    pub(crate) bytes: u64,
}

/// The writes that a lane makes in one run.
struct Task<'a> {
    objects: &'a Objects,
    schedule: Schedule,
    writes: u64,
    /// The number of each object's next event, as the run begins.
    next: &'a [u32],
    /// The lane's number, and how many there are.
    lane: u64,
    lanes: u64,
    sent: &'a AtomicUsize,
    answers: &'a Recorder,
    lateness: &'a Recorder,
}

impl Writers {
    /// Opens so many connections and has them create the objects, each with a stamp numbered 0.
    pub(crate) async fn create(
        client: &Client,
        connections: u32,
        objects: &Objects,
    ) -> Result<Self, LoadError> {
        let count = connections.clamp(1, objects.count);
        let mut writers = Self::connect(client, count, objects.count).await?;
        let lanes = u64::from(count);
        let creating = writers.lanes.iter_mut().zip(0..).map(|(lane, number)| {
            let own = (number..u64::from(objects.count)).step_by(lanes as usize);
            lane.create(objects, own)
        });
        try_join_all(creating).await?;
        Ok(writers)
    }

    /// Opens connections to write objects that exist already, whose next event is number 1.
    async fn connect(client: &Client, count: u32, objects: u32) -> Result<Self, LoadError> {
        let mut lanes = Vec::new();
        for _ in 0..count {
            lanes.push(Lane {
                client: client.clone(),
                connection: client.connect().await?,
                persists: false,
                repeated: 0,
            });
        }
        Ok(Self {
            lanes,
            answers: Arc::default(),
            lateness: Arc::default(),
            next: vec![1; objects as usize],
        })
    }

    /// Returns how many milliseconds late the writes since [`Self::begin`] were sent (p99), if that is more than
    /// [`LATENESS_MS_MAX`]. Writers that wait for a server that is not there are late for a reason.
    pub(crate) fn late_ms(&self) -> Option<f64> {
        let persist = self.lanes.iter().any(|lane| lane.persists);
        let late = self.lateness.lock().all().at(99.0);
        late.filter(|late| *late > LATENESS_MS_MAX && !persist)
    }

    /// Has writers wait for a server that is not there, from here on.
    pub(crate) fn start_persisting(&mut self) {
        for lane in &mut self.lanes {
            lane.persists = true;
        }
    }

    /// Returns how often a write had to be repeated.
    pub(crate) fn repeated(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.repeated).sum()
    }

    /// Sets the counts to zero, as a run begins.
    pub(crate) fn begin(&self) {
        for recorder in [&self.answers, &self.lateness] {
            recorder.lock().clear();
        }
    }

    /// Returns the number of each object's next event.
    pub(crate) fn next(&self) -> &[u32] {
        &self.next
    }

    /// Makes so many writes when they are due, to all objects in turn.
    pub(crate) async fn write(
        &mut self,
        objects: &Objects,
        schedule: Schedule,
        writes: u64,
        sent: &AtomicUsize,
    ) -> Result<(), LoadError> {
        let lanes = self.lanes.len() as u64;
        let (next, answers, lateness) = (&self.next, &self.answers, &self.lateness);
        let writing = self.lanes.iter_mut().zip(0..).map(|(lane, number)| {
            lane.write(Task {
                objects,
                schedule,
                writes,
                next,
                lane: number,
                lanes,
                sent,
                answers,
                lateness,
            })
        });
        try_join_all(writing).await?;
        let count = self.next.len() as u64;
        for (object, next) in self.next.iter_mut().enumerate() {
            let turns = (writes + count - 1 - object as u64) / count;
            *next += u32::try_from(turns).unwrap_or(u32::MAX);
        }
        Ok(())
    }
}

impl Lane {
    async fn create(
        &mut self,
        objects: &Objects,
        own: impl Iterator<Item = u64>,
    ) -> Result<(), LoadError> {
        for object in own {
            let stamp = Stamp {
                object: u32::try_from(object).unwrap_or(u32::MAX),
                number: 0,
                at: wall_nanos(),
            };
            let request = objects
                .payload
                .create(objects.kind, &objects.collection, stamp);
            let answer = self.connection.request(request).await;
            answer
                .and_then(|answer| answer.success())
                .map_err(LoadError::request("create an object"))?;
        }
        Ok(())
    }

    /// Makes the writes of the lane's objects when they are due. An object's writes are all made by one lane, one
    /// after the other.
    async fn write(&mut self, task: Task<'_>) -> Result<(), LoadError> {
        let count = task.next.len() as u64;
        let own = (0..task.writes).filter(|write| write % count % task.lanes == task.lane);
        for write in own {
            let (due, due_wall) = task.schedule.due(write);
            tokio::time::sleep_until(due).await;
            let late = now().saturating_duration_since(due);
            task.lateness.record(Some(nanos(late)), 0);
            let object = write % count;
            let number = u64::from(task.next[object as usize]) + write / count;
            let stamp = Stamp {
                object: u32::try_from(object).unwrap_or(u32::MAX),
                number: u32::try_from(number).unwrap_or(u32::MAX),
                at: due_wall,
            };
            self.update(task.objects, stamp).await?;
            let latency = now().saturating_duration_since(due);
            task.answers.record(Some(nanos(latency)), 0);
            task.sent.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes one version of an object; again and again if the lane persists, since repeating a write that was made
    /// changes nothing.
    async fn update(&mut self, objects: &Objects, stamp: Stamp) -> Result<(), LoadError> {
        let mut tries = 0;
        loop {
            let request = objects
                .payload
                .update(objects.kind, &objects.collection, stamp);
            let answer = self.connection.request(request).await;
            let Err(error) = answer.and_then(|answer| answer.success()) else {
                return Ok(());
            };
            tries += 1;
            if !self.persists || tries > TRIES_MAX {
                return Err(LoadError::request("write")(error));
            }
            self.repeated += 1;
            tokio::time::sleep(RETRY_PAUSE).await;
            if let Ok(connection) = self.client.connect().await {
                self.connection = connection;
            }
        }
    }
}
