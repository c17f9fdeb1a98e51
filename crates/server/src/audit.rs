//! Audit of a server: builds the backends that flags name, and runs them until everything is written.

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_audit::backend::{
    BatchOptions, Format, Housekeeping, LogFile, LogOptions, LogWriter, Mode, QueueOptions,
    Rotation, ThrottleOptions, Truncation, WebhookOptions, WebhookSender,
};
use ringwatch_audit::{Auditor, Metrics, Policy};
use ringwatch_tls::error::StartError;
use ringwatch_webhook::{ClientConfig, WebhookClient};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::flags::{AuditFlags, AuditQueueFlags};
use super::webhook_kubeconfig;

/// Maximum time to send and write the last events; then they are lost.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of events that are written in one go where requests wait for them.
const BLOCKING_BATCH_MAX: usize = 400;

const MIB: u64 = 1 << 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The files that flags of audit name, read; nothing is recorded without a policy and a backend.
#[derive(Debug)]
pub(super) struct AuditFiles {
    policy: Policy,
    log: Option<(LogFile, Option<Housekeeping>)>,
    webhook: Option<ClientConfig>,
}

impl AuditFiles {
    /// Reads the policy and the webhook's kubeconfig, and opens the log. Returns `None` if nothing is recorded.
    ///
    /// # Errors
    /// A file cannot be used.
    pub(super) fn load(flags: &AuditFlags, clock: &Clock) -> Result<Option<Self>, StartError> {
        let policy = policy(flags)?;
        let log = flags.log.audit_log_path.as_deref();
        let log = log.map(|path| open(path, flags, clock)).transpose()?;
        let webhook = webhook(flags)?;
        let has_backend = log.is_some() || webhook.is_some();
        let Some(policy) = policy else {
            if has_backend {
                tracing::info!("without --audit-policy-file no request is recorded");
            }
            return Ok(None);
        };
        Ok(has_backend.then_some(Self {
            policy,
            log,
            webhook,
        }))
    }

    /// Builds the auditor and its backends.
    pub(super) fn build(
        self,
        flags: &AuditFlags,
        client: &Arc<dyn WebhookClient>,
        registry: &mut Registry,
        ledger: &Ledger,
        clock: &Clock,
    ) -> (Arc<Auditor>, AuditBackends) {
        let metrics = Metrics::register(registry);
        let mut queues = Vec::new();
        let mut backends = AuditBackends::default();
        if let Some((file, housekeeping)) = self.log {
            let options = log_options(flags);
            let (end, clock) = (backends.end.clone(), clock.clone());
            let (queue, writer) = LogWriter::new(file, options, metrics.clone(), end, clock);
            queues.push(queue);
            let writers = &mut backends.writers;
            writers.push(("audit-log", writer.run().boxed()));
            writers.extend(housekeeping.map(|it| ("audit-files", it.run().boxed())));
        }
        if let Some(to) = self.webhook {
            let (client, options) = (Arc::clone(client), webhook_options(to, flags));
            let (end, clock) = (backends.end.clone(), clock.clone());
            let (queue, sender) = WebhookSender::new(client, options, metrics.clone(), end, clock);
            queues.push(queue);
            backends.webhook = Some(sender);
        }
        let (ledger, clock) = (ledger.clone(), clock.clone());
        let auditor = Auditor::new(self.policy, queues, metrics, ledger, clock);
        (Arc::new(auditor), backends)
    }
}

/// The backends of an auditor, which do not run yet.
#[derive(Default)]
pub(super) struct AuditBackends {
    end: CancellationToken,
    /// The backends that block, each with the name of its thread.
    writers: Vec<(&'static str, BoxFuture<'static, ()>)>,
    webhook: Option<WebhookSender>,
}

impl AuditBackends {
    /// Runs the backends: those that block on threads of their own, the webhook on the background threads.
    ///
    /// # Errors
    /// The system allows no more threads.
    pub(super) fn start(self, background: &Handle) -> Result<RunningAudit, StartError> {
        let mut running = RunningAudit {
            end: self.end,
            threads: Vec::new(),
            webhook: None,
        };
        for (name, writer) in self.writers {
            running.threads.push(run(name, writer)?);
        }
        let sender = self.webhook.map(|sender| background.spawn(sender.run()));
        running.webhook = sender.map(AbortOnDropHandle::new);
        Ok(running)
    }
}

/// The running backends. When it is dropped, what is in the queue of the log is still written.
#[derive(Debug)]
pub(super) struct RunningAudit {
    end: CancellationToken,
    threads: Vec<JoinHandle<()>>,
    webhook: Option<AbortOnDropHandle<()>>,
}

impl RunningAudit {
    /// Writes and sends the events that are left, within a bounded time.
    pub(super) async fn finish(mut self, clock: &Clock) {
        self.end.cancel();
        let webhook = self.webhook.take();
        let threads = std::mem::take(&mut self.threads);
        let written = Handle::current().spawn_blocking(move || threads.into_iter().for_each(join));
        let all = async {
            if let Some(webhook) = webhook {
                let _ = webhook.await;
            }
            let _ = written.await;
        };
        if clock.timeout(LAST_EVENTS_TIMEOUT, all).await.is_err() {
            tracing::error!("the last audit events could not be written in time");
        }
    }
}

impl Drop for RunningAudit {
    fn drop(&mut self) {
        self.end.cancel();
        std::mem::take(&mut self.threads).into_iter().for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread that writes audit events panicked");
    }
}

/// Runs a backend on a thread of its own, which may block.
fn run(name: &str, backend: BoxFuture<'static, ()>) -> Result<JoinHandle<()>, StartError> {
    let runtime = Handle::current();
    let thread = thread::Builder::new().name(name.to_owned());
    let thread = thread.spawn(move || runtime.block_on(backend));
    thread.map_err(|error| {
        let advice = "raise the limit of threads (ulimit -u)";
        StartError::new("start a thread", error, advice)
    })
}

/// Reads the policy, if flags name one.
pub(super) fn policy(flags: &AuditFlags) -> Result<Option<Policy>, StartError> {
    let path = flags.audit_policy_file.as_deref();
    path.map(Policy::read).transpose().map_err(|why| {
        let why = format!("loading audit policy file: {why}");
        let advice = "give --audit-policy-file a Policy of audit.k8s.io/v1 with rules";
        StartError::new("record requests", why, advice)
    })
}

/// Reads the kubeconfig of the webhook, if flags name one.
pub(super) fn webhook(flags: &AuditFlags) -> Result<Option<ClientConfig>, StartError> {
    let path = flags.webhook.audit_webhook_config_file.as_deref();
    path.map(|path| webhook_kubeconfig::read("audit webhook", path)).transpose().map_err(|why| {
        let why = format!("initializing audit webhook: {why}");
        let advice = "give --audit-webhook-config-file a kubeconfig with an https server and its authorities";
        StartError::new("record requests", why, advice)
    })
}

fn open(
    path: &Path,
    flags: &AuditFlags,
    clock: &Clock,
) -> Result<(LogFile, Option<Housekeeping>), StartError> {
    if path == Path::new("-") {
        return Ok((LogFile::standard_output(), None));
    }
    let log = &flags.log;
    // No flag is negative, which has been checked.
    let size = log.audit_log_maxsize.unsigned_abs();
    let days = u32::try_from(log.audit_log_maxage).unwrap_or(u32::MAX);
    let rotation = (size > 0).then_some(Rotation {
        bytes_max: size.saturating_mul(MIB),
        age_max: DAY.saturating_mul(days),
        files_max: number(log.audit_log_maxbackup),
        compress: log.audit_log_compress,
    });
    LogFile::open(path, rotation, clock.clone()).map_err(|error| {
        let why = format!("ensureLogFile: {}: {error}", path.display());
        let advice = "give --audit-log-path a file that can be written";
        StartError::new("record requests", why, advice)
    })
}

fn log_options(flags: &AuditFlags) -> LogOptions {
    let queue = flags.log.queue();
    LogOptions {
        format: match flags.log.audit_log_format.as_str() {
            "legacy" => Format::Legacy,
            _ => Format::Json,
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
            "blocking" => Mode::Blocking,
            "blocking-strict" => Mode::BlockingStrict,
            _ => Mode::Batch,
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

/// Returns a flag's number, which is not negative, within the bounds of what channels take.
fn number(flag: i64) -> usize {
    let flag = u32::try_from(flag).unwrap_or(u32::MAX);
    usize::try_from(flag).unwrap_or(usize::MAX)
}
