//! Asking the store for its newest revision, once for all who want to know.
//!
//! A reader may use an answer only if it was asked for after the reader came. So those who come
//! while one question is under way wait for the next, which is asked for all of them at once.

use std::sync::{Arc, PoisonError};

use tokio::sync::{Notify, oneshot};

use super::freshness::FRESHNESS_WAIT_MAX;
use crate::clock::{Clock, Instant};
use crate::storage::{ChangeSource, StorageError};
use crate::sync::{Mutex, MutexGuard};

/// An answer that several readers share.
type Answer = Result<u64, Arc<StorageError>>;

/// The readers that wait for the next question.
#[derive(Debug, Default)]
pub(super) struct RevisionProbe {
    waiting: Mutex<Vec<oneshot::Sender<Answer>>>,
    asked: Notify,
}

impl RevisionProbe {
    /// The store's newest revision, as of some moment after the call.
    ///
    /// # Errors
    /// What the store said; [`StorageError::Timeout`] at the deadline.
    pub(super) async fn revision(
        &self,
        clock: &Clock,
        deadline: Instant,
    ) -> Result<u64, StorageError> {
        let (sender, receiver) = oneshot::channel();
        self.lock().push(sender);
        self.asked.notify_one();
        tokio::select! {
            biased;
            answer = receiver => match answer {
                Ok(answer) => answer.map_err(StorageError::Shared),
                Err(_) => Err(unanswered()),
            },
            () = clock.sleep_until(deadline) => Err(unanswered()),
        }
    }

    /// Asks for as long as somebody wants to know. Never completes.
    pub(super) async fn serve(&self, source: &dyn ChangeSource, clock: &Clock) {
        loop {
            self.asked.notified().await;
            let waiting = std::mem::take(&mut *self.lock());
            let answer = tokio::select! {
                biased;
                answer = source.current_revision() => answer,
                () = clock.sleep(FRESHNESS_WAIT_MAX) => Err(unanswered()),
            };
            let answer = answer.map_err(Arc::new);
            for reader in waiting {
                // A reader that has gone does not want to know.
                let _ = reader.send(answer.clone());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<oneshot::Sender<Answer>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unanswered() -> StorageError {
    StorageError::Timeout {
        message: "the store did not say its revision in time".to_owned(),
    }
}
