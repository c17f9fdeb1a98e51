//! Requests whose answers are measured one by one: on a schedule, or one after the other.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::try_join_all;

use super::client::{Client, ClientRequest, Connection};
use super::context::Context;
use super::error::LoadError;
use super::floor::RecordedAnswers;
use super::measure::{Gauges, Observation, Recorder};
use super::schedule::Schedule;
use super::time::{Instant, nanos, now};

/// Connections whose requests are measured one by one.
#[derive(Debug)]
pub(crate) struct Clients {
    connections: Vec<Connection>,
    gauges: Gauges,
    recorder: Arc<Recorder>,
}

/// The times at which requests are made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// A number of requests, each when it is due.
    Due { schedule: Schedule, count: u64 },
    /// Each client again and again for so long, but at least once.
    For(Duration),
}

/// The answers to the requests of a run, as far as they are measured.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) seen: Observation,
    pub(crate) asked: u64,
    /// The first wrong answers, a line each; the request counts as not received.
    pub(crate) faults: Vec<String>,
    /// The bodies of the answers to a request, if one was answered right, and how long the heads were.
    pub(crate) recorded: Option<RecordedAnswers>,
}

impl Pace {
    /// Returns the same pace, beginning now.
    pub(crate) fn again(self) -> Self {
        match self {
            Self::Due { schedule, count } => Self::Due {
                schedule: schedule.again(),
                count,
            },
            Self::For(duration) => Self::For(duration),
        }
    }
}

/// The most wrong answers of a client that are shown in full.
const FAULTS_SHOWN_MAX: usize = 3;

impl Clients {
    /// Opens so many connections.
    pub(crate) async fn connect(client: &Client, count: u32) -> Result<Self, LoadError> {
        let mut connections = Vec::new();
        for _ in 0..count {
            connections.push(client.connect().await?);
        }
        let recorder = Arc::new(Recorder::default());
        let gauges = Gauges {
            recorders: vec![Arc::clone(&recorder)],
            ..Gauges::default()
        };
        Ok(Self {
            connections,
            gauges,
            recorder,
        })
    }

    /// Asks at this pace. `make` gives a request by its number; `check` looks at the answers to it so far, and may give
    /// a request that goes on with them, such as that for the next page. It must come to an end.
    pub(crate) async fn ask(
        &mut self,
        context: &Context,
        what: &str,
        pace: Pace,
        make: impl Fn(u64) -> ClientRequest,
        check: impl Fn(u64, &[Bytes]) -> Result<Option<ClientRequest>, String>,
    ) -> Result<Answers, LoadError> {
        let expected = match pace {
            Pace::Due { count, .. } => count,
            Pace::For(_) => 0,
        };
        let gauges = &self.gauges;
        let asking = Asking {
            what,
            pace,
            clients: self.connections.len(),
            make,
            check,
            recorder: &self.recorder,
            sent: &gauges.sent,
            last: RefCell::default(),
        };
        let before = received_bytes(&self.connections);
        let connections = self.connections.iter_mut().zip(0..);
        let running = connections.map(|(connection, client)| asking.run(connection, client));
        let running = try_join_all(running);
        let (done, seen) = context.observe(what, expected, gauges, running).await;
        let done = done?;
        let bodies = asking.last.into_inner();
        let received = received_bytes(&self.connections) - before;
        let answers = seen.received * bodies.len() as u64;
        let heads = received.saturating_sub(seen.bytes);
        let recorded = heads.checked_div(answers).map(|head| RecordedAnswers {
            bodies,
            head_bytes: head as usize,
        });
        Ok(Answers {
            seen,
            asked: done.iter().map(|(asked, _)| asked).sum(),
            faults: done.into_iter().flat_map(|(_, faults)| faults).collect(),
            recorded,
        })
    }
}

fn received_bytes(connections: &[Connection]) -> u64 {
    connections.iter().map(Connection::received_bytes).sum()
}

/// The requests that are made in a run, by all clients.
struct Asking<'a, M, C> {
    what: &'a str,
    pace: Pace,
    clients: usize,
    make: M,
    check: C,
    recorder: &'a Recorder,
    sent: &'a AtomicUsize,
    /// The bodies of the last answers that were right.
    last: RefCell<Vec<Bytes>>,
}

impl<M, C> Asking<'_, M, C>
where
    M: Fn(u64) -> ClientRequest,
    C: Fn(u64, &[Bytes]) -> Result<Option<ClientRequest>, String>,
{
    /// Makes the requests of one client, which are every so many of all. Returns how many these were, and the first
    /// wrong answers.
    async fn run(
        &self,
        connection: &mut Connection,
        client: u64,
    ) -> Result<(u64, Vec<String>), LoadError> {
        let (mut asked, mut faults) = (0, Vec::new());
        let begun = now();
        for number in (client..u64::MAX).step_by(self.clients) {
            let from = match self.pace {
                Pace::Due { count, .. } if number >= count => break,
                Pace::Due { schedule, .. } => {
                    let (due, _) = schedule.due(number);
                    tokio::time::sleep_until(due).await;
                    due
                }
                Pace::For(duration) if asked > 0 && begun.elapsed() >= duration => break,
                Pace::For(_) => now(),
            };
            asked += 1;
            if let Err(why) = self.one(connection, number, from).await?
                && faults.len() < FAULTS_SHOWN_MAX
            {
                faults.push(why);
            }
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
        Ok((asked, faults))
    }

    /// Makes one request, with those that go on with its answer, and records how long that took since `from`. Returns
    /// why an answer is wrong.
    async fn one(
        &self,
        connection: &mut Connection,
        number: u64,
        from: Instant,
    ) -> Result<Result<(), String>, LoadError> {
        let failed = |error| {
            let what = format!("go on with {}", self.what);
            LoadError::Request { what, error }
        };
        let (mut bodies, mut bytes) = (Vec::new(), 0);
        let mut request = (self.make)(number);
        loop {
            let answer = connection.request(request).await;
            let body = answer.and_then(|answer| answer.success()).map_err(failed)?;
            bytes += body.len();
            bodies.push(body);
            // Looking at the last answer must not count as the server's time.
            let took = now().saturating_duration_since(from);
            request = match (self.check)(number, &bodies) {
                Ok(None) => {
                    self.recorder.record(Some(nanos(took)), bytes);
                    self.last.replace(bodies);
                    return Ok(Ok(()));
                }
                Ok(Some(next)) => next,
                Err(why) => return Ok(Err(why)),
            };
        }
    }
}
