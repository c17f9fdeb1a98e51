//! The bounded queue between the threads on which spans end and the task that exports them.

use std::sync::Once;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::metrics::SpanMetrics;

/// Maximum number of spans that wait to be exported; further ones are dropped. OpenTelemetry's default.
pub(crate) const SPANS_MAX: usize = 2048;

/// The sending end of the queue.
#[derive(Debug)]
pub(crate) struct SpanQueue {
    sender: mpsc::Sender<SpanData>,
    metrics: SpanMetrics,
    /// The first drop is logged, and the metrics have the others.
    told: Once,
}

/// Creates a queue, and returns both its ends.
pub(crate) fn queue(metrics: SpanMetrics) -> (SpanQueue, mpsc::Receiver<SpanData>) {
    let (sender, receiver) = mpsc::channel(SPANS_MAX);
    let queue = SpanQueue {
        sender,
        metrics,
        told: Once::new(),
    };
    (queue, receiver)
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    /// Queues a span that has ended, or drops it. Never waits.
    fn on_end(&self, span: SpanData) {
        match self.sender.try_send(span) {
            Ok(()) => {}
            // The server ends.
            Err(TrySendError::Closed(_)) => self.metrics.export_failed(1),
            Err(TrySendError::Full(_)) => {
                self.metrics.queue_was_full();
                self.told.call_once(|| {
                    tracing::warn!(
                        "spans are dropped, since {SPANS_MAX} wait to be exported; \
                         ringwatch_tracing_dropped_spans_total counts them"
                    );
                });
            }
        }
    }

    /// The exporter sends what is left when it ends.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
