//! Asking the store for its newest revision, once for all who want to know.
//!
//! ```text
//!   readers   a b    c d e        f
//!   ask        |-------|----------|---> 1 ms apart at least, a few under way at a time
//!   answers      a b ...  c d e ...  f ...
//! ```
//!
//! A reader may use an answer only if it was asked for after the reader came. So those who come
//! while a question is under way share the next one, which does not wait for the answer: a reader
//! waits for little more than one round trip, however far the store is.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::{Notify, oneshot};

use super::freshness::FRESHNESS_WAIT_MAX;
use crate::clock::{Clock, Instant};
use crate::storage::{ChangeSource, StorageError};
use crate::sync::{Mutex, MutexGuard};

/// How soon one question may follow another while that is under way.
const QUESTION_SPACING: Duration = Duration::from_millis(1);

/// How many questions may be under way.
const QUESTIONS_MAX: usize = 16;

/// An answer that several readers share.
type Answer = Result<u64, Arc<StorageError>>;

/// The readers that wait for the next question.
#[derive(Debug, Default)]
pub(super) struct RevisionProbe {
    /// Those who came since the last question.
    waiting: Mutex<Vec<oneshot::Sender<Answer>>>,
    /// Notified of each who comes.
    asked: Notify,
}

impl RevisionProbe {
    /// The store's newest revision, as of some moment after the call.
    ///
    /// # Errors
    /// The store's error; [`StorageError::Timeout`] at the deadline.
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
        let mut questions = FuturesUnordered::new();
        let mut next = clock.now();
        loop {
            let busy = !questions.is_empty();
            tokio::select! {
                // With one under way, others are given time to come.
                () = self.asked(clock, busy.then_some(next)), if questions.len() < QUESTIONS_MAX => {
                    next = clock.now() + QUESTION_SPACING;
                    questions.push(self.ask(source, clock));
                }
                Some(()) = questions.next() => {}
            }
        }
    }

    /// Completes when somebody wants to know, but not before an instant.
    async fn asked(&self, clock: &Clock, not_before: Option<Instant>) {
        if let Some(not_before) = not_before {
            clock.sleep_until(not_before).await;
        }
        self.asked.notified().await;
    }

    /// Asks once, for all who have come.
    async fn ask(&self, source: &dyn ChangeSource, clock: &Clock) {
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
            // A reader that has gone does not want to know.
            let _ = reader.send(answer.clone());
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
