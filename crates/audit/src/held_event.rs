//! An event on its way to the backends.

use ringwatch::budget::Share;

use crate::event::AuditEvent;

/// The error of an event that a backend in the mode `blocking-strict` has not stored. The request must not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to store audit event")]
pub struct NotStored;

/// An event that waits in the queues, with its share of the memory budget.
#[derive(Debug)]
pub(crate) struct HeldEvent {
    /// The event.
    pub(crate) event: AuditEvent,
    /// The memory that is counted for it.
    pub(crate) memory: Share,
    /// True if the budget had room for it, so that it may wait in a queue whose length no request bounds.
    pub(crate) may_wait: bool,
}

impl HeldEvent {
    /// Returns about how many bytes of memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
}
