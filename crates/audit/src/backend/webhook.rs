//! The webhook backend: posts batches of events to a server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt};
use ringwatch::clock::Clock;
use ringwatch_apimachinery::webhook_client::{ClientConfig, WebhookClient};
use tokio_util::sync::CancellationToken;

use super::batches::{BatchOptions, Batches};
use super::queue::{Queue, QueueOptions, Queued, queue};
use super::truncation::{Truncation, fitting};
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
    /// How events are gathered.
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
    ) -> (Queue, Self) {
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
                    Some(batch) => under_way.push(sending.send(batch)),
                    None => has_more = false,
                },
            }
        }
    }
}

impl Sending {
    /// Sends a batch, in several attempts if need be, and settles its events.
    async fn send(&self, batch: Vec<Queued>) {
        let body = self.list(&batch).await;
        let is_sent = match body {
            Some(body) => self.post(body, batch.len()).await,
            None => true,
        };
        for queued in batch {
            queued.settle(is_sent);
        }
    }

    /// Writes an EventList, and lets other tasks run between two events; `None` if all of its events are too large.
    async fn list(&self, batch: &[Queued]) -> Option<Bytes> {
        let (bounds, metrics) = (self.truncation.as_ref(), &self.metrics);
        let head = format!(
            "{{\"kind\":\"EventList\",\"apiVersion\":\"{API_VERSION}\",\"metadata\":{{}},\"items\":["
        );
        let mut list = head.into_bytes();
        let empty = list.len();
        for queued in batch {
            tokio::task::yield_now().await;
            let Some(fitting) = fitting(&queued.held.event, bounds, true, WEBHOOK, metrics) else {
                continue;
            };
            if list.len() > empty {
                list.push(b',');
            }
            list.extend(fitting.json);
        }
        if list.len() == empty {
            return None;
        }
        list.extend(b"]}\n");
        Some(list.into())
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
