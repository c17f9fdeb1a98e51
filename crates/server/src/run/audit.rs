//! Runs the backends of audit until everything is written.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures::future::BoxFuture;
use ringwatch::clock::Clock;
use ringwatch_tls::error::StartError;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::build::audit::AuditBackends;

/// Maximum time to send and write the last events; then they are lost.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// The running backends. When it is dropped, what is in the queue of the log is still written.
#[derive(Debug)]
pub(crate) struct RunningAudit {
    end: CancellationToken,
    threads: Vec<JoinHandle<()>>,
    webhook: Option<AbortOnDropHandle<()>>,
}

impl RunningAudit {
    /// Runs the backends: those that block on threads of their own, the webhook on the background threads.
    ///
    /// # Errors
    /// The system allows no more threads.
    pub(crate) fn run(backends: AuditBackends, background: &Handle) -> Result<Self, StartError> {
        let mut running = Self {
            end: backends.end,
            threads: Vec::new(),
            webhook: None,
        };
        for (name, writer) in backends.writers {
            running.threads.push(own_thread(name, writer)?);
        }
        let sender = backends
            .webhook
            .map(|sender| background.spawn(sender.run()));
        running.webhook = sender.map(AbortOnDropHandle::new);
        Ok(running)
    }
    /// Writes and sends the events that are left, within a bounded time.
    pub(crate) async fn finish(mut self, clock: &Clock) {
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
fn own_thread(name: &str, backend: BoxFuture<'static, ()>) -> Result<JoinHandle<()>, StartError> {
    let runtime = Handle::current();
    let thread = thread::Builder::new().name(name.to_owned());
    let thread = thread.spawn(move || runtime.block_on(backend));
    thread.map_err(|error| {
        let advice = "raise the limit of threads (ulimit -u)";
        StartError::new("start a thread", error, advice)
    })
}
