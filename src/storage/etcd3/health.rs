//! A sign of life of the backend.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Instant};
use crate::storage::backend::{Backend, BackendError, RangeRequest};

/// How long a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the backend is asked at most; callers in between get the last answer.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Probes the backend when asked, at a bounded rate.
#[derive(Debug)]
pub struct Health {
    backend: Arc<dyn Backend>,
    /// A key that is read and need not exist.
    key: String,
    clock: Clock,
    last: Mutex<Probe>,
}

/// The last probe.
#[derive(Debug)]
struct Probe {
    began: Option<Instant>,
    outcome: Result<(), BackendError>,
}

impl Health {
    /// The health of a backend; `path_prefix` as in [`super::Config`].
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, path_prefix: &str, clock: Clock) -> Self {
        Self {
            backend,
            key: format!("{path_prefix}/health"),
            clock,
            last: Mutex::new(Probe {
                began: None,
                outcome: Err(BackendError::Unavailable(
                    "etcd client connection not yet established".to_owned(),
                )),
            }),
        }
    }

    /// Whether the backend answers a linearizable read.
    ///
    /// # Errors
    /// What the last probe said, at most a second ago.
    pub async fn check(&self) -> Result<(), BackendError> {
        if let Some(last) = self.begin() {
            return last;
        }
        let probe = self.backend.range(RangeRequest::key(&self.key));
        let outcome = tokio::select! {
            outcome = probe => outcome.map(|_| ()),
            () = self.clock.sleep(PROBE_TIMEOUT) => {
                Err(BackendError::Timeout("context deadline exceeded".to_owned()))
            }
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.outcome.clone_from(&outcome);
        outcome
    }

    /// Takes the turn to probe, or gives the last answer.
    fn begin(&self) -> Option<Result<(), BackendError>> {
        let now = self.clock.now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let recently = |began: Instant| now.saturating_duration_since(began) < PROBE_INTERVAL;
        if last.began.is_some_and(recently) {
            return Some(last.outcome.clone());
        }
        last.began = Some(now);
        None
    }
}
