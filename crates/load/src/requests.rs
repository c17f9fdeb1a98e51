//! Requests whose answers are measured one by one: on a schedule, or one after the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::future::try_join_all;

use super::client::{Client, Connection, Request};
use super::context::Context;
use super::error::LoadError;
use super::measure::{Gauges, Observation, Recorder};
use super::schedule::Schedule;
use super::time::{nanos, now};

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

    /// Asks at this pace. `make` gives a request by its number; `check` looks at the answer, and may
    /// give a request that goes on with it, such as that for the next page.
    pub(crate) async fn ask(
        &mut self,
        context: &Context,
        what: &str,
        pace: Pace,
        make: impl Fn(u64) -> Request,
        check: impl Fn(u64, &[Bytes]) -> Result<Option<Request>, String>,
    ) -> Result<Answers, LoadError> {
        let clients = self.connections.len() as u64;
        let expected = match pace {
            Pace::Due { count, .. } => count,
            Pace::For(_) => 0,
        };
        let (gauges, recorder) = (&self.gauges, &self.recorder);
        let asking = self
            .connections
            .iter_mut()
            .zip(0..)
            .map(|(connection, client)| {
                let (make, check) = (&make, &check);
                async move {
                    let mut faults = Vec::new();
                    let mut asked = 0;
                    let failed = |error| {
                        let what = format!("go on with {what}");
                        LoadError::Request { what, error }
                    };
                    let end = match pace {
                        Pace::Due { .. } => None,
                        Pace::For(duration) => Some(now() + duration),
                    };
                    // A client's requests are every so many of all.
                    for number in (client..u64::MAX).step_by(clients as usize) {
                        let from = match pace {
                            Pace::Due { count, .. } if number >= count => break,
                            Pace::Due { schedule, .. } => {
                                let (due, _) = schedule.due(number);
                                tokio::time::sleep_until(due).await;
                                due
                            }
                            Pace::For(_) if asked > 0 && end.is_some_and(|end| now() >= end) => {
                                break;
                            }
                            Pace::For(_) => now(),
                        };
                        asked += 1;
                        let (mut bodies, mut bytes) = (Vec::new(), 0);
                        let mut next = Some(make(number));
                        while let Some(request) = next.take() {
                            let answer = connection.request(request).await;
                            let body = answer.and_then(|answer| answer.success());
                            let body = body.map_err(failed)?;
                            bytes += body.len();
                            bodies.push(body);
                            // Looking at the last answer must not count as the server's time.
                            let took = now().saturating_duration_since(from);
                            match check(number, &bodies) {
                                Ok(None) => recorder.record(Some(nanos(took)), bytes),
                                Ok(more) => next = more,
                                Err(why) if faults.len() < FAULTS_SHOWN_MAX => faults.push(why),
                                Err(_) => {}
                            }
                        }
                        gauges.sent.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok::<_, LoadError>((asked, faults))
                }
            });
        let asking = try_join_all(asking);
        let (done, seen) = context.observe(what, expected, gauges, asking).await;
        let done = done?;
        Ok(Answers {
            seen,
            asked: done.iter().map(|(asked, _)| asked).sum(),
            faults: done.into_iter().flat_map(|(_, faults)| faults).collect(),
        })
    }
}
