//! The end of serving: new requests are turned away, requests in progress are waited for, and watches end one by one.
//!
//! Ported from Kubernetes 1.36, apiserver/pkg/server/filters/with_retry_after.go `WithRetryAfter`,
//! apiserver/pkg/server/filters/watch_termination.go `WithWatchTerminationDuringShutdown` and
//! apiserver/pkg/server/genericapiserver.go `RunWithContext`. There a watch stops delivering at once and its end is
//! delayed; here it delivers until its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{HeaderMap, Uri};
use ringwatch::clock::Clock;
use ringwatch_http::CancellationFlag;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Prefixes of the paths whose requests are answered to the end.
const EXEMPT_PATHS: [&str; 4] = ["/readyz", "/livez", "/healthz", "/metrics"];
/// The beginning of the user agent of a server's own requests, which are answered to the end.
const EXEMPT_AGENT: &str = "kube-apiserver/";
/// The least number of watches that end in a second.
const ENDS_PER_SECOND_MIN: f64 = 200.0;

/// The end of requests and watches. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// True if requests get 429 once the drain has begun.
    send_retry_after: bool,
    /// The time over which watches end; zero if they are not counted.
    watches_grace: Duration,
    begun: CancellationFlag,
    /// The requests in progress, watches and streams aside.
    requests: TaskTracker,
    watches: Mutex<Watches>,
}

/// The watches in progress, each with the flag that ends it.
#[derive(Debug, Default)]
struct Watches {
    next: u64,
    open: BTreeMap<u64, CancellationFlag>,
}

/// A watch in progress, until this is dropped.
#[derive(Debug)]
pub(super) struct OpenWatch {
    drain: Drain,
    number: u64,
    end: CancellationFlag,
}

/// The server no longer begins watches.
#[derive(Debug)]
pub(super) struct Draining;

impl Drain {
    /// Creates it from the settings: if requests get 429, and the time over which watches end, zero for no such time.
    #[must_use]
    pub fn new(send_retry_after: bool, watches_grace: Duration) -> Self {
        Self(Arc::new(State {
            send_retry_after,
            watches_grace,
            ..State::default()
        }))
    }

    /// Returns true if requests are turned away before the server stops listening.
    #[must_use]
    pub fn sends_retry_after(&self) -> bool {
        self.0.send_retry_after
    }

    /// Returns the time over which watches end; zero if they are not counted.
    #[must_use]
    pub fn watches_grace(&self) -> Duration {
        self.0.watches_grace
    }

    /// Turns new requests and watches away from now on.
    pub fn begin(&self) {
        // A watch that begins at the same time is either refused or counted.
        let _watches = self.watches();
        self.0.begun.cancel();
    }

    /// Waits until the requests in progress are answered.
    pub async fn requests_answered(&self) {
        self.0.requests.close();
        self.0.requests.wait().await;
    }

    /// Ends the open watches one by one, spread over the time that they have.
    pub async fn end_watches(&self, clock: &Clock) {
        let open: Vec<CancellationFlag> = self.watches().open.values().cloned().collect();
        let Ok(count) = u32::try_from(open.len()) else {
            return open.iter().for_each(CancellationFlag::cancel);
        };
        let grace = self.0.watches_grace.as_secs_f64();
        let rate = (f64::from(count) / grace).max(ENDS_PER_SECOND_MIN);
        let start = clock.now();
        for (place, end) in (0_u32..).zip(open) {
            let after = Duration::from_secs_f64(f64::from(place) / rate);
            clock.sleep_until(start + after).await;
            end.cancel();
        }
    }

    /// Returns true if a request is turned away with 429.
    pub(super) fn turns_away(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        self.0.send_retry_after && self.0.begun.is_cancelled() && !is_exempt(uri, headers)
    }

    /// Counts a request until the token is dropped; `None` if it is not waited for.
    pub fn request(&self, uri: &Uri, headers: &HeaderMap) -> Option<TaskTrackerToken> {
        let counted = self.0.send_retry_after && !is_exempt(uri, headers);
        counted.then(|| self.0.requests.token())
    }

    /// Counts a watch until the result is dropped; `None` if watches are not counted.
    pub(super) fn watch(&self) -> Result<Option<OpenWatch>, Draining> {
        if self.0.watches_grace.is_zero() {
            return Ok(None);
        }
        let mut watches = self.watches();
        if self.0.begun.is_cancelled() {
            return Err(Draining);
        }
        let (number, end) = (watches.next, CancellationFlag::default());
        watches.next += 1;
        watches.open.insert(number, end.clone());
        drop(watches);
        let drain = self.clone();
        Ok(Some(OpenWatch { drain, number, end }))
    }

    fn watches(&self) -> MutexGuard<'_, Watches> {
        let watches = self.0.watches.lock();
        watches.unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenWatch {
    /// Returns the flag that ends the watch.
    pub(super) fn end(&self) -> &CancellationFlag {
        &self.end
    }
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.drain.watches().open.remove(&self.number);
    }
}

/// Returns true for requests that are answered as long as the server listens.
fn is_exempt(uri: &Uri, headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).map(http::HeaderValue::as_bytes);
    EXEMPT_PATHS.iter().any(|path| uri.path().starts_with(path))
        || agent.is_some_and(|agent| agent.starts_with(EXEMPT_AGENT.as_bytes()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_requests_about_health_are_answered_once_it_has_begun() {
        let drain = Drain::new(true, Duration::ZERO);
        let mut own = HeaderMap::new();
        own.insert(
            USER_AGENT,
            HeaderValue::from_static("kube-apiserver/v1.36.2"),
        );
        let (pods, ready) = (
            Uri::from_static("/api/v1/pods"),
            Uri::from_static("/readyz/etcd"),
        );
        let nothing = HeaderMap::new();
        assert!(!drain.turns_away(&pods, &nothing));
        drain.begin();
        assert!(drain.turns_away(&pods, &nothing));
        assert!(!drain.turns_away(&ready, &nothing) && !drain.turns_away(&pods, &own));
        assert!(drain.request(&ready, &nothing).is_none());
        let other = Drain::new(false, Duration::ZERO);
        other.begin();
        assert!(!other.turns_away(&pods, &nothing));
    }

    #[tokio::test]
    async fn requests_in_progress_are_waited_for() {
        let drain = Drain::new(true, Duration::ZERO);
        let (uri, headers) = (Uri::from_static("/api"), HeaderMap::new());
        let request = drain.request(&uri, &headers).expect("counted");
        let mut answered = Box::pin(drain.requests_answered());
        assert!(futures::poll!(&mut answered).is_pending());
        drop(request);
        answered.await;
    }

    #[tokio::test(start_paused = true)]
    async fn watches_end_spread_over_their_time() {
        let clock = Clock::real();
        let drain = Drain::new(false, Duration::from_secs(10));
        let open: Vec<OpenWatch> = (0..4_000)
            .map(|_| drain.watch().expect("not begun").expect("counted"))
            .collect();
        let gone = drain.watch().expect("not begun");
        drop(gone);
        drain.begin();
        drain.watch().expect_err("begun");
        let start = clock.now();
        let mut ending = Box::pin(drain.end_watches(&clock));
        tokio::select! {
            () = &mut ending => panic!("at once"),
            () = clock.sleep(Duration::from_secs(5)) => {}
        }
        let ended = open.iter().filter(|it| it.end().is_cancelled()).count();
        assert!((1_900..=2_100).contains(&ended), "{ended}");
        ending.await;
        assert!(open.iter().all(|it| it.end().is_cancelled()));
        assert!(clock.now() - start <= Duration::from_secs(10));
    }
}
