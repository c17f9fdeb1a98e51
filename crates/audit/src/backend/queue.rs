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

/// The moment at which a request goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendMode {
    /// At once. Events for which the queue has no room are dropped, and counted.
    Batch,
    /// After its event has been stored, or storing it has failed.
    Blocking,
    /// As `Blocking`; but a request whose first event cannot be stored is refused.
    BlockingStrict,
}

/// The options of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// The moment at which a request goes on.
    pub mode: BackendMode,
    /// Maximum number of events that wait, in the mode [`BackendMode::Batch`].
    pub events_max: usize,
}

/// The requests' end of a queue.
#[derive(Debug)]
pub struct EventQueue {
    mode: BackendMode,
    sender: mpsc::Sender<QueuedEvent>,
}

/// An event in a queue.
#[derive(Debug)]
pub(super) struct QueuedEvent {
    pub(super) held: Arc<HeldEvent>,
    /// Told if the event is stored; `None` if nobody waits for it.
    stored: Option<oneshot::Sender<bool>>,
}

impl QueuedEvent {
    /// Tells the request that waits that the event is stored, or that this has failed.
    pub(super) fn settle(self, is_stored: bool) {
        if let Some(stored) = self.stored {
            // The request may have been given up.
            let _ = stored.send(is_stored);
        }
    }
}

/// Creates a queue and the backend's end of it.
pub(super) fn queue(options: QueueOptions) -> (EventQueue, mpsc::Receiver<QueuedEvent>) {
    let events_max = match options.mode {
        BackendMode::Batch => options.events_max,
        BackendMode::Blocking | BackendMode::BlockingStrict => BLOCKING_EVENTS_MAX,
    };
    let (sender, receiver) = mpsc::channel(events_max);
    let mode = options.mode;
    (EventQueue { mode, sender }, receiver)
}

impl EventQueue {
    /// Puts an event into the queue, and returns the receipt that the mode demands.
    pub(crate) fn store(&self, event: &Arc<HeldEvent>, metrics: &Metrics) -> Receipt {
        if self.mode == BackendMode::Batch {
            self.store_now(event, metrics);
            return Receipt::NotNeeded;
        }
        let (stored, storing) = oneshot::channel();
        // The event of a request that waits is not refused for memory: the request itself is what takes it.
        self.send(event, Some(stored), metrics);
        Receipt::Awaited {
            is_strict: self.mode == BackendMode::BlockingStrict,
            storing,
        }
    }

    /// Puts an event into the queue; if there is no room, or the memory budget is spent, the event is lost and counted.
    pub(crate) fn store_now(&self, event: &Arc<HeldEvent>, metrics: &Metrics) {
        if event.may_wait {
            self.send(event, None, metrics);
        } else {
            lost("the memory budget is spent", metrics);
        }
    }

    fn send(
        &self,
        event: &Arc<HeldEvent>,
        stored: Option<oneshot::Sender<bool>>,
        metrics: &Metrics,
    ) {
        let held = Arc::clone(event);
        match self.sender.try_send(QueuedEvent { held, stored }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => lost("audit buffer queue blocked", metrics),
            Err(TrySendError::Closed(_)) => lost("audit backend shut down", metrics),
        }
    }
}

fn lost(why: &str, metrics: &Metrics) {
    tracing::debug!(why, "an audit event is lost");
    metrics.errors(BUFFERED, 1);
}

/// The promise of a queue to tell if an event is stored.
#[derive(Debug)]
pub(crate) enum Receipt {
    /// Nobody waits in the mode [`BackendMode::Batch`].
    NotNeeded,
    /// The event is in the queue, or lost.
    Awaited {
        /// True if a failure counts.
        is_strict: bool,
        /// Told by the backend.
        storing: oneshot::Receiver<bool>,
    },
}

impl Receipt {
    /// Waits until the event is stored or lost.
    ///
    /// # Errors
    /// [`NotStored`] if it is lost, and the mode is [`BackendMode::BlockingStrict`].
    pub(crate) async fn settled(self) -> Result<(), NotStored> {
        let Self::Awaited { is_strict, storing } = self else {
            return Ok(());
        };
        // A backend that ends without an answer has not stored it.
        let is_stored = storing.await.unwrap_or(false);
        if is_stored || !is_strict {
            Ok(())
        } else {
            Err(NotStored)
        }
    }
}
