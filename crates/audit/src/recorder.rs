//! Hands events to the backends, and counts their memory.

use std::sync::Arc;

use ringwatch::budget::{Account, Ledger, Share};
use ringwatch::clock::Clock;

use crate::backend::EventQueue;
use crate::event::AuditEvent;
use crate::held_event::{HeldEvent, NotStored};
use crate::metrics::Metrics;

/// The queues of the backends.
#[derive(Debug)]
pub(crate) struct Recorder {
    queues: Vec<EventQueue>,
    metrics: Metrics,
    /// The memory budget of events.
    ledger: Ledger,
    clock: Clock,
}

impl Recorder {
    pub(crate) fn new(
        queues: Vec<EventQueue>,
        metrics: Metrics,
        ledger: Ledger,
        clock: Clock,
    ) -> Self {
        Self {
            queues,
            metrics,
            ledger,
            clock,
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn share(&self) -> Share {
        self.ledger.share(Account::Requests)
    }

    /// Hands an event to all backends, and waits for those that are to have stored it.
    pub(crate) async fn store(&self, event: AuditEvent) -> Result<(), NotStored> {
        self.metrics.event();
        let held = self.hold(event);
        // In all queues before one is waited for: a request that is given up meanwhile loses nothing.
        let receipts = self.queues.iter();
        let receipts: Vec<_> = receipts
            .map(|queue| queue.store(&held, &self.metrics))
            .collect();
        let mut stored = Ok(());
        for receipt in receipts {
            stored = stored.and(receipt.settled().await);
        }
        stored
    }

    /// Hands an event to all backends without waiting.
    pub(crate) fn store_now(&self, event: AuditEvent) {
        self.metrics.event();
        let held = self.hold(event);
        for queue in &self.queues {
            queue.store_now(&held, &self.metrics);
        }
    }

    /// Counts the memory of an event. One whose bodies have no room in the budget goes on without them.
    fn hold(&self, mut event: AuditEvent) -> Arc<HeldEvent> {
        let mut memory = self.share();
        let bodies = event.bytes_of_bodies();
        let mut may_wait = memory.admit(event.bytes_without_bodies() + bodies).is_ok();
        if !may_wait {
            if bodies > 0 {
                event.truncate();
            }
            let bytes = event.bytes_without_bodies();
            may_wait = memory.admit(bytes).is_ok();
            memory.set(bytes);
        }
        Arc::new(HeldEvent {
            event,
            memory,
            may_wait,
        })
    }
}
