//! The health check of the backend.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Instant};
use crate::storage::backend::{Backend, BackendError, RangeRequest};
use crate::sync::Mutex;

/// Maximum time that a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum time between two probes; callers in between get the last result.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Probes the backend on demand, at a bounded rate.
#[derive(Debug)]
pub struct Health {
    backend: Arc<dyn Backend>,
    /// The key that is read; it need not exist.
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
    /// Creates a health check of a backend; `path_prefix` is that of [`super::Config`].
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

    /// Checks that the backend answers a linearizable read.
    ///
    /// # Errors
    /// The error of the last probe, at most a second ago.
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

    /// Returns the last result; `None` if the caller has to probe.
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

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::storage::backend::{
        LeaseId, RangeResponse, Txn, TxnResponse, WatchRequest, WatchResponses,
    };
    use crate::storage::etcd3::tests::etcd::Etcd;

    /// A backend that counts reads and answers them, or not.
    #[derive(Debug)]
    struct Reads {
        answers: bool,
        count: Mutex<u32>,
    }

    #[async_trait]
    impl Backend for Reads {
        async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError> {
            assert_eq!(request.revision, 0, "a probe is linearizable");
            *self.count.lock().expect("no panic") += 1;
            if !self.answers {
                std::future::pending::<()>().await;
            }
            Ok(RangeResponse {
                revision: 1,
                kvs: Vec::new(),
                more: false,
                count: 0,
            })
        }
        async fn txn(&self, _: Txn) -> Result<TxnResponse, BackendError> {
            Err(unasked())
        }
        async fn watch(&self, _: WatchRequest) -> Result<WatchResponses, BackendError> {
            Err(unasked())
        }
        async fn request_progress(&self) -> Result<(), BackendError> {
            Err(unasked())
        }
        fn progress_is_trusted(&self) -> bool {
            false
        }
        async fn grant_lease(&self, _: i64) -> Result<LeaseId, BackendError> {
            Err(unasked())
        }
        async fn compact(&self, _: u64) -> Result<(), BackendError> {
            Err(unasked())
        }
        async fn oldest_revision(&self) -> Result<u64, BackendError> {
            Err(unasked())
        }
        async fn size_bytes(&self) -> Result<u64, BackendError> {
            Err(unasked())
        }
    }

    fn unasked() -> BackendError {
        BackendError::Other("a probe only reads".to_owned())
    }

    fn health(answers: bool) -> (Arc<Reads>, Health) {
        let count = Mutex::new(0);
        let reads = Arc::new(Reads { answers, count });
        let backend: Arc<dyn Backend> = Arc::clone(&reads) as Arc<dyn Backend>;
        (reads, Health::new(backend, "/registry", Clock::real()))
    }

    #[tokio::test(start_paused = true)]
    async fn the_backend_is_asked_once_a_second() {
        let (reads, health) = health(true);
        let count = || *reads.count.lock().expect("no panic");
        assert_eq!(health.check().await, Ok(()));
        assert_eq!(health.check().await, Ok(()));
        assert_eq!(count(), 1);
        tokio::time::advance(PROBE_INTERVAL).await;
        assert_eq!(health.check().await, Ok(()));
        assert_eq!(count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_outcome_is_told_until_the_next_probe_whatever_it_was() {
        let etcd = Etcd::new();
        let backend = Arc::clone(&etcd) as Arc<dyn Backend>;
        let health = Health::new(backend, "/registry", Clock::real());
        for error in [None, Some(unasked()), None] {
            let outcome = error.clone().map_or(Ok(()), Err);
            etcd.script().read_errors.extend(error);
            for _ in 0..3 {
                assert_eq!(health.check().await, outcome);
            }
            tokio::time::advance(PROBE_INTERVAL).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_an_error_that_stays_until_the_next_probe() {
        let (reads, health) = health(false);
        let began = Clock::real().now();
        let (probed, meanwhile) = tokio::join!(health.check(), health.check());
        assert!(matches!(probed, Err(BackendError::Timeout(_))));
        assert!(
            matches!(meanwhile, Err(BackendError::Unavailable(_))),
            "none has ended yet"
        );
        assert_eq!(Clock::real().now() - began, PROBE_TIMEOUT);
        assert_eq!(*reads.count.lock().expect("no panic"), 1);
    }
}
