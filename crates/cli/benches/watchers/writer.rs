//! Writes on a schedule. An event's time is the one at which its write was due, so a stall is
//! charged to every event that it delayed.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;

use super::api::{Api, Line};
use super::event::Fields;
use super::{Failed, event};

/// How often a writer that persists tries again, and how long it waits between: half a minute.
const TRIES_MAX: u32 = 600;
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Connections that write, each to objects of its own.
#[derive(Debug)]
pub(crate) struct Writer {
    lanes: Vec<Lane>,
    /// The highest version that any write was acknowledged with.
    acknowledged: Arc<Mutex<u64>>,
}

#[derive(Debug)]
struct Lane {
    api: Api,
    line: Line,
    /// True if writes are repeated until they succeed. Repeating one that did changes nothing.
    persists: bool,
    acknowledged: Arc<Mutex<u64>>,
    objects: Vec<Target>,
    /// Which of them is next.
    turn: usize,
}

/// An object to write to.
#[derive(Clone, Debug)]
struct Target {
    path: String,
    /// The number of its next event.
    next: u64,
}

impl Writer {
    /// A writer over so many connections; objects are dealt out to them, to each as many. `next` is
    /// the number of each object's next event.
    pub(crate) async fn connect(
        api: &Api,
        connections: usize,
        objects: &[String],
        next: u64,
    ) -> Result<Self, Failed> {
        if !objects.len().is_multiple_of(connections) {
            return Err("some objects would get more events than others".into());
        }
        let acknowledged = Arc::new(Mutex::new(0));
        let mut lanes = Vec::new();
        for number in 0..connections {
            let own = objects.iter().skip(number).step_by(connections);
            lanes.push(Lane {
                api: api.clone(),
                line: api.connect().await?,
                persists: false,
                acknowledged: Arc::clone(&acknowledged),
                objects: own
                    .map(|path| Target {
                        path: path.clone(),
                        next,
                    })
                    .collect(),
                turn: 0,
            });
        }
        Ok(Self {
            lanes,
            acknowledged,
        })
    }

    /// From here on a server that is not there is waited for.
    pub(crate) fn persists(&mut self) {
        for lane in &mut self.lanes {
            lane.persists = true;
        }
    }

    /// The highest version that any write was acknowledged with so far.
    pub(crate) fn acknowledged(&self) -> Arc<Mutex<u64>> {
        Arc::clone(&self.acknowledged)
    }

    /// Writes so many events at a steady rate, to all objects in turn. Gives the time that it took.
    pub(crate) async fn write(&mut self, events: u64, rate: u64) -> Result<Duration, Failed> {
        let interval = Duration::from_secs(1) / u32::try_from(rate)?;
        let start = SystemTime::now();
        let connections = self.lanes.len() as u64;
        let mut writing = JoinSet::new();
        for (number, mut lane) in (0..).zip(self.lanes.drain(..)) {
            writing.spawn(async move {
                let mut event = number;
                while event < events {
                    let due = start + interval * u32::try_from(event + 1)?;
                    lane.write(due).await?;
                    event += connections;
                }
                Ok::<_, Failed>((number, lane))
            });
        }
        let mut lanes = Vec::new();
        while let Some(lane) = writing.join_next().await {
            lanes.push(lane??);
        }
        lanes.sort_by_key(|(number, _)| *number);
        self.lanes = lanes.into_iter().map(|(_, lane)| lane).collect();
        Ok(SystemTime::now().duration_since(start)?)
    }
}

impl Lane {
    /// Writes to the next object when it is due.
    async fn write(&mut self, due: SystemTime) -> Result<(), Failed> {
        tokio::time::sleep(due.duration_since(SystemTime::now()).unwrap_or_default()).await;
        let turn = self.turn;
        self.turn = (turn + 1) % self.objects.len();
        let Target { path, next } = self.objects[turn].clone();
        let patch = event::patch(next, due);
        let mut answer = self.line.patch(&path, patch.clone()).await;
        for _ in 0..TRIES_MAX {
            if answer.is_ok() || !self.persists {
                break;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
            if let Ok(line) = self.api.connect().await {
                self.line = line;
                answer = self.line.patch(&path, patch.clone()).await;
            }
        }
        let revision = Fields::new().revision(&answer?);
        let revision = revision.ok_or("an object without a version")?;
        let mut acknowledged = self.acknowledged.lock().expect("no panic");
        *acknowledged = revision.max(*acknowledged);
        drop(acknowledged);
        self.objects[turn].next += 1;
        Ok(())
    }
}
