//! The bounded queue between requests and a backend.

use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::held_event::{HeldEvent, NotStored};
use crate::metrics::Metrics;

/// Maximum number of events that wait in the blocking modes, where each is waited for by a request, or by nobody if its
/// client has gone.
const BLOCKING_EVENTS_MAX: usize = 10_000;

/// The plugin that is counted with events for which there was no room.
const BUFFERED: &str = "buffered";

/// When a request goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At once. Events for which the queue has no room are dropped, and counted.
    Batch,
    /// When its event is stored, or that has failed.
    Blocking,
    /// As `Blocking`; but a request whose first event cannot be stored is refused.
    BlockingStrict,
}

/// The options of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// When a request goes on.
    pub mode: Mode,
    /// Maximum number of events that wait, in the mode [`Mode::Batch`].
    pub events_max: usize,
}

/// The requests' end of a queue.
#[derive(Debug)]
pub struct Queue {
    mode: Mode,
    sender: mpsc::Sender<Queued>,
}

/// An event in a queue.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) held: Arc<HeldEvent>,
    /// Told if the event is stored; `None` if nobody waits for it.
    stored: Option<oneshot::Sender<bool>>,
}

impl Queued {
    /// Tells the request that waits that the event is stored, or that this has failed.
    pub(super) fn settle(self, is_stored: bool) {
        if let Some(stored) = self.stored {
            // The request may have been given up.
            let _ = stored.send(is_stored);
        }
    }
}

/// Creates a queue and the backend's end of it.
pub(super) fn queue(options: QueueOptions) -> (Queue, mpsc::Receiver<Queued>) {
    let events_max = match options.mode {
        Mode::Batch => options.events_max,
        Mode::Blocking | Mode::BlockingStrict => BLOCKING_EVENTS_MAX,
    };
    let (sender, receiver) = mpsc::channel(events_max);
    let mode = options.mode;
    (Queue { mode, sender }, receiver)
}

impl Queue {
    /// Puts an event into the queue and waits as the mode demands.
    ///
    /// # Errors
    /// [`NotStored`] if the backend failed to store it, and the mode is [`Mode::BlockingStrict`].
    pub(crate) async fn store(
        &self,
        event: &Arc<HeldEvent>,
        metrics: &Metrics,
    ) -> Result<(), NotStored> {
        if self.mode == Mode::Batch {
            self.store_now(event, metrics);
            return Ok(());
        }
        let (stored, storing) = oneshot::channel();
        let queued = Queued {
            held: Arc::clone(event),
            stored: Some(stored),
        };
        let is_stored = match self.sender.send(queued).await {
            // A backend that ends without an answer has not stored it.
            Ok(()) => storing.await.unwrap_or(false),
            Err(_) => {
                metrics.errors(BUFFERED, 1);
                false
            }
        };
        if is_stored || self.mode == Mode::Blocking {
            Ok(())
        } else {
            Err(NotStored)
        }
    }

    /// Puts an event into the queue; if there is no room, or the memory budget is spent, the event is lost and counted.
    pub(crate) fn store_now(&self, event: &Arc<HeldEvent>, metrics: &Metrics) {
        let why = if event.may_wait {
            let sent = self.sender.try_send(Queued {
                held: Arc::clone(event),
                stored: None,
            });
            match sent {
                Ok(()) => return,
                Err(TrySendError::Full(_)) => "audit buffer queue blocked",
                Err(TrySendError::Closed(_)) => "audit backend shut down",
            }
        } else {
            "the memory budget is spent"
        };
        tracing::debug!(why, "an audit event is lost");
        metrics.errors(BUFFERED, 1);
    }
}
