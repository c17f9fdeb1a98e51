//! A probe of the store's newest revision, shared by all readers that need it at the same time.
//!
//! ```text
//!   readers   a b    c d e        f
//!   send       |-------|----------|---> 1 ms apart at least, a few in flight at a time
//!   responses    a b ...  c d e ...  f ...
//! ```
//!
//! A reader may use a response only if it was requested after the reader came. So the readers that come while a request
//! is in flight share the next one, which does not wait for the response: a reader waits for little more than one round
//! trip, however slow the store is.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::feed_revision::FRESHNESS_WAIT_MAX;
use crate::clock::{Clock, Instant};
use crate::storage::{ChangeSource, StorageError};
use crate::sync::{Mutex, MutexGuard, Notify, oneshot};

/// Minimum time between two requests while one is in flight.
const REQUEST_SPACING: Duration = Duration::from_millis(1);

/// Maximum number of requests that may be in flight.
const REQUESTS_MAX: usize = 16;

/// A response that several readers share.
type ProbeAnswer = Result<u64, Arc<StorageError>>;

/// The readers that wait for the next request.
#[derive(Debug, Default)]
pub(crate) struct RevisionProbe {
    /// The readers that came since the last request.
    waiting: Mutex<Vec<oneshot::Sender<ProbeAnswer>>>,
    /// Notified by each reader.
    reader_came: Notify,
}

impl RevisionProbe {
    /// Returns the store's newest revision as of some moment after the call.
    ///
    /// # Errors
    /// The store's error; [`StorageError::Timeout`] at the deadline.
    pub(crate) async fn revision(
        &self,
        clock: &Clock,
        deadline: Instant,
    ) -> Result<u64, StorageError> {
        let (sender, receiver) = oneshot::channel();
        self.lock().push(sender);
        self.reader_came.notify_one();
        tokio::select! {
            biased;
            answer = receiver => match answer {
                Ok(answer) => answer.map_err(StorageError::Shared),
                Err(_) => Err(unanswered()),
            },
            () = clock.sleep_until(deadline) => Err(unanswered()),
        }
    }

    /// Sends requests for as long as readers wait. Never completes.
    pub(crate) async fn serve(&self, source: &dyn ChangeSource, clock: &Clock) {
        let mut requests = FuturesUnordered::new();
        let mut next = clock.now();
        loop {
            let busy = !requests.is_empty();
            tokio::select! {
                // While a request is in flight, more readers are given time to come.
                () = self.reader_waits(clock, busy.then_some(next)), if requests.len() < REQUESTS_MAX => {
                    next = clock.now() + REQUEST_SPACING;
                    requests.push(self.request(source, clock));
                }
                Some(()) = requests.next() => {}
            }
        }
    }

    /// Completes when a reader waits, but not before an instant.
    async fn reader_waits(&self, clock: &Clock, not_before: Option<Instant>) {
        if let Some(not_before) = not_before {
            clock.sleep_until(not_before).await;
        }
        self.reader_came.notified().await;
    }

    /// Sends one request, for all readers that have come.
    async fn request(&self, source: &dyn ChangeSource, clock: &Clock) {
        let waiting = std::mem::take(&mut *self.lock());
        if waiting.is_empty() {
            return;
        }
        let answer = tokio::select! {
            biased;
            answer = source.current_revision() => answer,
            () = clock.sleep(FRESHNESS_WAIT_MAX) => Err(unanswered()),
        };
        let answer = answer.map_err(Arc::new);
        for reader in waiting {
            // The reader may have gone.
            let _ = reader.send(answer.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<oneshot::Sender<ProbeAnswer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unanswered() -> StorageError {
    StorageError::Timeout {
        message: "the store did not return its revision in time".to_owned(),
    }
}
