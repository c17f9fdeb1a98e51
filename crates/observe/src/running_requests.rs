//! The requests that run, the slowest of those that have ended lately, and the number that each client made.
//!
//! A request is in a map while it runs, and is counted for its client when it has ended. Only of one that took long are
//! its facts kept afterwards. Watches and streams are not among them, which are meant to last: of these the beginning
//! is counted.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http::StatusCode;
use ringwatch::clock::{Clock, Instant};
use ringwatch::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

use crate::client_summary::ClientSummary;
use crate::observed_request::ObservedRequest;
use crate::sharded_registry::ShardedRegistry;
use crate::shortened_text::shortened;
use crate::traffic::{ClientTraffic, Sums, Traffic};

/// Minimum time that a request takes to be kept when it has ended.
const SLOW_MIN: Duration = Duration::from_millis(100);

/// Maximum number of requests that are kept when they have ended.
const ENDED_MAX: usize = 100;

/// The time for which they are kept.
const ENDED_FOR: Duration = Duration::from_secs(60);

/// The requests that run, the slowest of those that have ended, and the traffic of clients. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RunningRequests(Arc<RequestTable>);

#[derive(Debug, Default)]
struct RequestTable {
    running: ShardedRegistry<RequestFacts>,
    /// The requests that took at least [`SLOW_MIN`], in no order.
    ended: Mutex<Vec<EndedRequest>>,
    traffic: Traffic,
}

/// The facts of a request that are known from its beginning.
#[derive(Debug)]
struct RequestFacts {
    facts: Arc<dyn ObservedRequest>,
    client: ClientSummary,
    /// True if it asks for all objects of a resource.
    everything: bool,
    since: Instant,
    /// The status of the response; 0 as long as there is none.
    code: AtomicU64,
    /// The bytes of the response's body that were sent.
    bytes: AtomicU64,
}

#[derive(Debug)]
struct EndedRequest {
    summary: RequestSummary,
    at: Instant,
}

/// A request that runs, until this is dropped.
#[derive(Debug)]
pub struct RunningRequest {
    all: RunningRequests,
    id: u64,
    request: Arc<RequestFacts>,
    clock: Clock,
}

/// The summary of a request that runs or has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSummary {
    /// The verb.
    pub verb: String,
    /// The start of the path, without parameters.
    pub path: Box<str>,
    /// The client.
    pub client: ClientSummary,
    /// The time that it took, or has taken so far.
    pub took: Duration,
    /// True if it runs.
    pub running: bool,
    /// The status of its response, whose body may still be sent; `None` if there is none.
    pub code: Option<StatusCode>,
}

impl RunningRequests {
    /// Adds a request that begins. `everything` says whether it asks for all objects of a resource.
    #[must_use]
    pub fn begin(
        &self,
        facts: Arc<dyn ObservedRequest>,
        everything: bool,
        client: ClientSummary,
        clock: &Clock,
    ) -> RunningRequest {
        let (id, request) = self.0.running.add(|_| RequestFacts {
            facts,
            client,
            everything,
            since: clock.now(),
            code: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        RunningRequest {
            all: self.clone(),
            id,
            request,
            clock: clock.clone(),
        }
    }

    /// Counts a watch or stream whose response begins with this status.
    pub fn begun(
        &self,
        facts: &dyn ObservedRequest,
        everything: bool,
        client: &ClientSummary,
        code: StatusCode,
        now: Instant,
    ) {
        let end = Sums::of_one(Some(code), 0, Duration::ZERO);
        self.0.traffic.count(client, facts, everything, &end, now);
    }

    /// Returns the requests of the last minute by client, verb and resource: those that make the most work, the most
    /// first.
    #[must_use]
    pub fn busiest(&self, max: usize, now: Instant) -> Vec<ClientTraffic> {
        self.0.traffic.busiest(max, now)
    }

    /// Returns the slowest requests that run or have ended within a minute, the slowest first.
    #[must_use]
    pub fn slowest(&self, max: usize, now: Instant) -> Vec<RequestSummary> {
        let mut running = self.0.running.all();
        // The others are not shown.
        running.sort_by_key(|it| it.since);
        running.truncate(max);
        let running = running.iter().map(|it| it.summary(now, true));
        let mut shown: Vec<_> = running.collect();
        let mut ended = self.ended();
        forget_old(&mut ended, now);
        shown.extend(ended.iter().map(|it| it.summary.clone()));
        drop(ended);
        shown.sort_by_key(|it| std::cmp::Reverse(it.took));
        shown.truncate(max);
        shown
    }

    /// Keeps a request that took long. If there is no room, it takes the place of the fastest that took less time than
    /// it.
    fn keep(&self, ended: EndedRequest) {
        let mut all = self.ended();
        forget_old(&mut all, ended.at);
        if all.len() < ENDED_MAX {
            all.push(ended);
            return;
        }
        let fastest = all.iter_mut().min_by_key(|it| it.summary.took);
        if let Some(fastest) = fastest.filter(|it| it.summary.took < ended.summary.took) {
            *fastest = ended;
        }
    }

    fn ended(&self) -> MutexGuard<'_, Vec<EndedRequest>> {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningRequest {
    /// Notes the status of the response, whose body is still to be sent.
    pub fn responded(&self, code: StatusCode) {
        // Relaxed: a figure by itself, as where it is loaded.
        let code = u64::from(code.as_u16());
        self.request.code.store(code, Ordering::Relaxed);
    }

    /// Adds bytes of the body that were taken to be sent.
    pub fn sent(&self, bytes: usize) {
        // Relaxed: as above.
        let sent = &self.request.bytes;
        sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.all.0.running.remove(self.id);
        let (at, request) = (self.clock.now(), &self.request);
        let took = at.saturating_duration_since(request.since);
        let bytes = request.bytes.load(Ordering::Relaxed);
        let end = Sums::of_one(request.code(), bytes, took);
        let traffic = &self.all.0.traffic;
        let (client, everything) = (&request.client, request.everything);
        traffic.count(client, &*request.facts, everything, &end, at);
        if took >= SLOW_MIN {
            let summary = request.summary(at, false);
            self.all.keep(EndedRequest { summary, at });
        }
    }
}

impl RequestFacts {
    /// Returns the summary of the request.
    fn summary(&self, now: Instant, running: bool) -> RequestSummary {
        RequestSummary {
            verb: self.facts.verb().to_owned(),
            path: shortened(self.facts.path()),
            client: self.client.clone(),
            took: now.saturating_duration_since(self.since),
            running,
            code: self.code(),
        }
    }

    /// Returns the status of the response; `None` as long as there is none.
    fn code(&self) -> Option<StatusCode> {
        let code = u16::try_from(self.code.load(Ordering::Relaxed)).ok()?;
        StatusCode::from_u16(code).ok()
    }
}

/// Forgets the requests that ended too long ago to be shown.
fn forget_old(ended: &mut Vec<EndedRequest>, now: Instant) {
    ended.retain(|it| now.saturating_duration_since(it.at) < ENDED_FOR);
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::observed_request::testing::PlainRequest;

    fn begin(all: &RunningRequests, path: &'static str, clock: &Clock) -> RunningRequest {
        let facts = Arc::new(PlainRequest {
            verb: "get",
            path,
            resource: None,
        });
        let client = ClientSummary::new("jane", &HeaderMap::new(), None);
        all.begin(facts, false, client, clock)
    }

    #[tokio::test(start_paused = true)]
    async fn slow_requests_are_shown_for_a_minute_after_their_end() {
        let (all, clock) = (RunningRequests::default(), Clock::real());
        let shown = |clock: &Clock| {
            let shown = all.slowest(10, clock.now()).into_iter();
            shown
                .map(|it| (it.path, it.running, it.code))
                .collect::<Vec<_>>()
        };
        let quick = begin(&all, "/api/v1/nodes", &clock);
        let slow = begin(&all, "/api/v1/pods", &clock);
        drop(quick);
        assert_eq!(shown(&clock), [("/api/v1/pods".into(), true, None)]);
        clock.sleep(SLOW_MIN).await;
        slow.responded(StatusCode::OK);
        drop(slow);
        let ended = ("/api/v1/pods".into(), false, Some(StatusCode::OK));
        assert_eq!(shown(&clock), [ended]);
        clock.sleep(ENDED_FOR).await;
        assert!(shown(&clock).is_empty());
        assert!(all.ended().is_empty(), "it is not kept any longer");
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_are_kept() {
        let (all, clock) = (RunningRequests::default(), Clock::real());
        let run = async |path: &'static str, time: Duration| {
            let request = begin(&all, path, &clock);
            clock.sleep(time).await;
            drop(request);
        };
        run("/first", SLOW_MIN).await;
        for _ in 1..ENDED_MAX {
            run("/other", 2 * SLOW_MIN).await;
        }
        run("/last", 3 * SLOW_MIN).await;
        let shown = all.slowest(ENDED_MAX + 1, clock.now());
        assert_eq!(shown.len(), ENDED_MAX);
        assert_eq!(&*shown[0].path, "/last");
        assert!(shown.iter().all(|it| &*it.path != "/first"));
    }
}
