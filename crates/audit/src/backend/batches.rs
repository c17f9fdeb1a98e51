//! Takes events from a queue in batches.

use std::time::Duration;

use ringwatch::clock::{Clock, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::queue::QueuedEvent;
use super::throttle::{Throttle, ThrottleOptions};

/// The memory of its events, in bytes, after which a batch is complete.
pub(super) const BYTES_MAX: u64 = 10 << 20;

/// Options of the batches in which events are gathered.
#[derive(Clone, Copy, Debug)]
pub struct BatchOptions {
    /// Maximum number of events of a batch; positive.
    pub events_max: usize,
    /// Maximum time for which the first event waits for others.
    pub wait_max: Duration,
    /// The limit of batches; `None` for none.
    pub throttle: Option<ThrottleOptions>,
}

/// The batches of a queue.
#[derive(Debug)]
pub(super) struct Batches {
    receiver: mpsc::Receiver<QueuedEvent>,
    options: BatchOptions,
    throttle: Option<Throttle>,
    /// The batch that is gathered.
    gathered: Vec<QueuedEvent>,
    bytes: u64,
    /// The time at which that one is complete.
    due: Instant,
    /// Cancelled when no more events are accepted.
    end: CancellationToken,
    is_closed: bool,
    clock: Clock,
}

impl Batches {
    pub(super) fn new(
        receiver: mpsc::Receiver<QueuedEvent>,
        options: BatchOptions,
        end: CancellationToken,
        clock: Clock,
    ) -> Self {
        let now = clock.now();
        Self {
            receiver,
            options,
            throttle: options.throttle.map(|it| Throttle::new(it, now)),
            gathered: Vec::new(),
            bytes: 0,
            due: now,
            end,
            is_closed: false,
            clock,
        }
    }

    /// Returns the next batch, which has at least one event; `None` after the last one, when the end has come. If it is
    /// dropped before it is ready, no event is lost.
    pub(super) async fn next(&mut self) -> Option<Vec<QueuedEvent>> {
        while !self.is_full() {
            if self.gathered.is_empty() {
                match self.receive().await {
                    Some(first) => {
                        self.due = self.clock.now() + self.options.wait_max;
                        self.push(first);
                    }
                    None => return None,
                }
            } else if self.is_closed || self.options.wait_max.is_zero() {
                match self.receiver.try_recv() {
                    Ok(more) => self.push(more),
                    Err(_) => break,
                }
            } else {
                let (due, clock) = (self.due, self.clock.clone());
                let more = tokio::select! {
                    more = self.receive() => more,
                    () = clock.sleep_until(due) => None,
                };
                match more {
                    Some(more) => self.push(more),
                    None => break,
                }
            }
        }
        let clock = &self.clock;
        if let Some(throttle) = self.throttle.as_mut().filter(|_| !self.is_closed) {
            tokio::select! {
                () = throttle.take(clock) => {}
                () = self.end.cancelled() => {}
            }
        }
        self.bytes = 0;
        Some(std::mem::take(&mut self.gathered))
    }

    /// Receives an event; `None` when there will be none.
    async fn receive(&mut self) -> Option<QueuedEvent> {
        if self.is_closed {
            return self.receiver.recv().await;
        }
        tokio::select! {
            biased;
            queued = self.receiver.recv() => queued,
            () = self.end.cancelled() => {
                self.is_closed = true;
                self.receiver.close();
                self.receiver.recv().await
            }
        }
    }

    fn is_full(&self) -> bool {
        self.gathered.len() >= self.options.events_max || self.bytes >= BYTES_MAX
    }

    fn push(&mut self, queued: QueuedEvent) {
        self.bytes += queued.held.bytes();
        self.gathered.push(queued);
    }
}
