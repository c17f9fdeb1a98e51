//! Delays requests of the API until all resources and roles are loaded.
//!
//! Before that a stored permission would be missing, and the path of a custom resource would be a 404: a garbage
//! collector that gets 404 for an owner deletes its dependents.

use std::time::Duration;

use http::Response;
use ringwatch::clock::Clock;
use ringwatch_endpoints::Refusal;
use ringwatch_endpoints::health::Done;
use ringwatch_http::ResponseBody;

use super::answer;

/// Maximum time that a request waits, in seconds. A start takes less, unless the store is slow.
const START_SECONDS_MAX: u64 = 30;

/// The steps that must be done before the API is served.
#[derive(Debug, Default)]
pub struct Start(pub Vec<Done>);

impl Start {
    /// Returns true if a request for this path is one of the API and comes before the steps are done.
    pub(super) fn delays(&self, path: &str) -> bool {
        // A server URL that ends with a slash leads to paths that begin with two.
        let path = path.trim_start_matches('/');
        let is_of_api = path.starts_with("api") || path.starts_with("openapi");
        is_of_api && !self.0.iter().all(Done::is_done)
    }

    /// Waits until the steps are done. After too long, returns the response that says so.
    pub(super) async fn wait(&self, clock: &Clock) -> Option<Response<ResponseBody>> {
        let all = async {
            for done in &self.0 {
                done.wait().await;
            }
        };
        let at_most = Duration::from_secs(START_SECONDS_MAX);
        let waited = clock.timeout(at_most, all).await;
        waited.err().map(|_| answer::refused(&Refusal::Starting))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_comes_before_everything_is_known_waits_for_it() {
        let (first, last) = (Done::default(), Done::default());
        let start = Start(vec![first.clone(), last.clone()]);
        let began = Clock::real().now();
        for path in ["/healthz", "/livez", "/readyz", "/metrics", "/version"] {
            assert!(!start.delays(path), "{path} waits for nobody");
        }
        let known = async {
            first.set();
            Clock::real().sleep(Duration::from_secs(2)).await;
            last.set();
        };
        let waited = async |path| {
            assert!(start.delays(path), "{path}");
            let served = start.wait(&Clock::real()).await.is_none();
            (served, Clock::real().now() - began)
        };
        let paths = ["/api", "//apis/example.com/v1/widgets", "/openapi/v3"];
        let all = futures::future::join_all(paths.map(waited));
        let (all, ()) = tokio::join!(all, known);
        assert_eq!(all, [(true, Duration::from_secs(2)); 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waited_in_vain_may_come_again() {
        let start = Start(vec![Done::default()]);
        let answer = start.wait(&Clock::real()).await.expect("an answer");
        assert_eq!(answer.status(), 503);
        assert_eq!(answer.headers()["retry-after"], "5");
    }
}
