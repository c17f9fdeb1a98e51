//! Builds the auditor of a server, and the backends that flags name.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use ringwatch_audit::backend::{
    BackendMode, BatchOptions, LogFormat, LogOptions, LogWriter, QueueOptions, ThrottleOptions,
    Truncation, WebhookOptions, WebhookSender,
};
use ringwatch_audit::{Auditor, Metrics};
use ringwatch_webhook::{ClientConfig, WebhookClient};
use tokio_util::sync::CancellationToken;

use super::inputs::ServerInputs;
use crate::config::audit_files::{AuditFiles, number};
use crate::config::flags::{AuditFlags, AuditQueueFlags};

/// Maximum number of events that are written in one go where requests wait for them.
const BLOCKING_BATCH_MAX: usize = 400;

/// Builds the auditor of the files that flags name, and its backends.
pub(crate) fn auditor(
    files: AuditFiles,
    inputs: &ServerInputs<'_>,
    client: &Arc<dyn WebhookClient>,
    metrics: Metrics,
) -> (Arc<Auditor>, AuditBackends) {
    let (flags, clock) = (&inputs.flags.audit, &inputs.clock);
    let mut queues = Vec::new();
    let mut backends = AuditBackends::default();
    if let Some((file, housekeeping)) = files.log {
        let options = log_options(flags);
        let (end, clock) = (backends.end.clone(), clock.clone());
        let (queue, writer) = LogWriter::new(file, options, metrics.clone(), end, clock);
        queues.push(queue);
        let writers = &mut backends.writers;
        writers.push(("audit-log", writer.run().boxed()));
        writers.extend(housekeeping.map(|it| ("audit-files", it.run().boxed())));
    }
    if let Some(to) = files.webhook {
        let (client, options) = (Arc::clone(client), webhook_options(to, flags));
        let (end, clock) = (backends.end.clone(), clock.clone());
        let (queue, sender) = WebhookSender::new(client, options, metrics.clone(), end, clock);
        queues.push(queue);
        backends.webhook = Some(sender);
    }
    let (ledger, clock) = (inputs.ledger.clone(), clock.clone());
    let auditor = Auditor::new(files.policy, queues, metrics, ledger, clock);
    (Arc::new(auditor), backends)
}

/// The backends of an auditor, which do not run yet.
#[derive(Default)]
pub(crate) struct AuditBackends {
    /// Has them end once everything is written.
    pub(crate) end: CancellationToken,
    /// The backends that block, each with the name of its thread.
    pub(crate) writers: Vec<(&'static str, BoxFuture<'static, ()>)>,
    /// The backend that sends events to the webhook.
    pub(crate) webhook: Option<WebhookSender>,
}

fn log_options(flags: &AuditFlags) -> LogOptions {
    let queue = flags.log.queue();
    LogOptions {
        format: match flags.log.audit_log_format.as_str() {
            "legacy" => LogFormat::Legacy,
            _ => LogFormat::Json,
        },
        queue: queue_options(&queue),
        batches: batch_options(&queue),
        truncation: truncation(&queue),
    }
}

fn webhook_options(to: ClientConfig, flags: &AuditFlags) -> WebhookOptions {
    let queue = flags.webhook.queue();
    WebhookOptions {
        to,
        initial_backoff: flags.webhook.audit_webhook_initial_backoff,
        queue: queue_options(&queue),
        batches: batch_options(&queue),
        truncation: truncation(&queue),
    }
}

fn queue_options(flags: &AuditQueueFlags<'_>) -> QueueOptions {
    QueueOptions {
        mode: match flags.mode {
            "blocking" => BackendMode::Blocking,
            "blocking-strict" => BackendMode::BlockingStrict,
            _ => BackendMode::Batch,
        },
        events_max: number(flags.buffer_size),
    }
}

fn batch_options(flags: &AuditQueueFlags<'_>) -> BatchOptions {
    if !flags.is_batch() {
        return BatchOptions {
            events_max: BLOCKING_BATCH_MAX,
            wait_max: Duration::ZERO,
            throttle: None,
        };
    }
    BatchOptions {
        events_max: number(flags.max_size),
        wait_max: flags.max_wait,
        throttle: flags.throttle.map(|(rate, burst)| ThrottleOptions {
            rate,
            burst: u32::try_from(burst).unwrap_or(u32::MAX),
        }),
    }
}

fn truncation(flags: &AuditQueueFlags<'_>) -> Option<Truncation> {
    flags.truncates.then_some(Truncation {
        event_bytes_max: flags.max_event_size.unsigned_abs(),
        batch_bytes_max: flags.max_batch_size.unsigned_abs(),
    })
}
