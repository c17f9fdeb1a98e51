//! The webhook backend: posts batches of events to a server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use ringwatch::budget::Share;
use ringwatch::clock::Clock;
use ringwatch_webhook::{ClientConfig, WebhookClient};
use tokio_util::sync::CancellationToken;

use super::batches::{self, BatchOptions, Batches};
use super::queue::{EventQueue, QueueOptions, QueuedEvent, queue};
use super::truncation::{Fitting, Truncation, fitting};
use crate::metrics::Metrics;
use crate::rendering::API_VERSION;

/// The plugin that is counted with events that could not be sent.
const WEBHOOK: &str = "webhook";

/// Maximum time of an attempt, as in kube-apiserver.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of attempts to send a batch, and the growth and jitter of the pauses between them, as there.
const ATTEMPTS_MAX: usize = 5;
const PAUSE_GROWTH: f64 = 1.5;
const PAUSE_JITTER: f64 = 0.2;
/// The longest of these pauses when the end has come.
const LAST_PAUSE: Duration = Duration::from_millis(500);

/// Maximum number of batches that are being sent. While a webhook hangs, further ones wait in the queue.
const UNDER_WAY_MAX: usize = 64;

/// The options of a webhook.
#[derive(Debug)]
pub struct WebhookOptions {
    /// The address and the credentials.
    pub to: ClientConfig,
    /// The pause before the second attempt.
    pub initial_backoff: Duration,
    /// The queue before it.
    pub queue: QueueOptions,
    /// The options of the batches in which events are gathered.
    pub batches: BatchOptions,
    /// The bounds of events; `None` for none.
    pub truncation: Option<Truncation>,
}

/// Sends the events of a queue to a webhook.
#[derive(Debug)]
pub struct WebhookSender {
    batches: Batches,
    sending: Sending,
}

/// An EventList that is rendered, without its end.
#[derive(Debug, Default)]
struct EventList {
    events: Vec<QueuedEvent>,
    json: Vec<u8>,
    /// The bytes of its events, as bounds count them.
    size: u64,
}

impl EventList {
    fn push(&mut self, queued: QueuedEvent, json: &[u8], size: u64) {
        if self.events.is_empty() {
            let head = format!(
                "{{\"kind\":\"EventList\",\"apiVersion\":\"{API_VERSION}\",\"metadata\":{{}},\"items\":["
            );
            self.json = head.into_bytes();
        } else {
            self.json.push(b',');
        }
        self.json.extend_from_slice(json);
        self.size += size;
        self.events.push(queued);
    }
}

/// The parts that all batches have in common.
#[derive(Debug)]
struct Sending {
    client: Arc<dyn WebhookClient>,
    to: ClientConfig,
    initial_backoff: Duration,
    truncation: Option<Truncation>,
    metrics: Metrics,
    end: CancellationToken,
    clock: Clock,
}

impl WebhookSender {
    /// Creates a sender and its queue. After `end` is cancelled no more events are accepted, and pauses are short.
    pub fn new(
        client: Arc<dyn WebhookClient>,
        options: WebhookOptions,
        metrics: Metrics,
        end: CancellationToken,
        clock: Clock,
    ) -> (EventQueue, Self) {
        let (queue, receiver) = queue(options.queue);
        let sender = Self {
            batches: Batches::new(receiver, options.batches, end.clone(), clock.clone()),
            sending: Sending {
                client,
                to: options.to,
                initial_backoff: options.initial_backoff,
                truncation: options.truncation,
                metrics,
                end,
                clock,
            },
        };
        (queue, sender)
    }

    /// Sends events until the end has come and the queue is empty.
    pub async fn run(self) {
        let Self {
            mut batches,
            sending,
        } = self;
        let mut under_way = FuturesUnordered::new();
        let mut has_more = true;
        while has_more || !under_way.is_empty() {
            tokio::select! {
                Some(()) = under_way.next() => {}
                batch = batches.next(), if has_more && under_way.len() < UNDER_WAY_MAX => match batch {
                    Some(batch) => {
                        let memory = admit(&batch, &mut under_way).await;
                        under_way.push(sending.send(batch, memory));
                    }
                    None => has_more = false,
                },
            }
        }
    }
}

/// Counts the memory that a batch takes once it is rendered, which is about that of its events. While the memory budget
/// has no room for it, the batches that are being sent go first.
async fn admit<S: Future<Output = ()>>(
    batch: &[QueuedEvent],
    under_way: &mut FuturesUnordered<S>,
) -> Option<Share> {
    let mut memory = batch.first()?.held.memory.another();
    let estimate = batch.iter().map(|queued| queued.held.bytes()).sum();
    while memory.admit(estimate).is_err() {
        if under_way.next().await.is_none() {
            // One batch is always on its way: the events that it settles free memory.
            memory.set(estimate);
            break;
        }
    }
    Some(memory)
}

impl Sending {
    /// Renders a batch and sends it, and settles its events. A batch that is too large when it is rendered becomes
    /// several lists, which are sent one after the other. `memory` counts their bytes.
    async fn send(&self, batch: Vec<QueuedEvent>, mut memory: Option<Share>) {
        let mut list = EventList::default();
        for queued in batch {
            // Other tasks run between two events.
            tokio::task::yield_now().await;
            let (event, bounds) = (&queued.held.event, self.truncation.as_ref());
            let fitting = fitting(event, bounds, true, WEBHOOK, &self.metrics);
            let Some(Fitting { json, size, .. }) = fitting else {
                // It is too large, which refuses no request.
                queued.settle(true);
                continue;
            };
            let bytes_max = bounds.map_or(batches::BYTES_MAX, |it| it.batch_bytes_max);
            if !list.events.is_empty() && list.size + size > bytes_max {
                self.send_list(std::mem::take(&mut list)).await;
            }
            list.push(queued, &json, size);
            if let Some(memory) = &mut memory {
                memory.set(list.json.capacity() as u64);
            }
        }
        if !list.events.is_empty() {
            self.send_list(list).await;
        }
    }

    /// Sends a list, in several attempts if need be, and settles its events.
    async fn send_list(&self, list: EventList) {
        let EventList {
            events, mut json, ..
        } = list;
        json.extend(b"]}\n");
        let is_sent = self.post(json.into(), events.len()).await;
        for queued in events {
            queued.settle(is_sent);
        }
    }

    /// Posts a body; returns false when all attempts have failed.
    async fn post(&self, body: Bytes, events: usize) -> bool {
        let mut pause = self.initial_backoff.as_secs_f64();
        for attempt in 1..=ATTEMPTS_MAX {
            let posted = self
                .client
                .post(&self.to, body.clone(), ATTEMPT_TIMEOUT)
                .await;
            let Err(error) = posted else {
                return true;
            };
            if attempt == ATTEMPTS_MAX {
                tracing::warn!(%error, events, "cannot send audit events");
                break;
            }
            tracing::debug!(%error, events, "audit events are sent again");
            let jittered = pause * (1.0 + PAUSE_JITTER * rand::random::<f64>());
            let jittered = Duration::try_from_secs_f64(jittered).unwrap_or(Duration::MAX);
            let hurried = async {
                self.end.cancelled().await;
                self.clock.sleep(LAST_PAUSE).await;
            };
            tokio::select! {
                () = self.clock.sleep(jittered) => {}
                () = hurried => {}
            }
            pause *= PAUSE_GROWTH;
        }
        self.metrics.errors(WEBHOOK, events);
        false
    }
}
