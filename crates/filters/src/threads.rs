//! The threads of the server, each for one kind of work, so that long work of one kind does not keep the others
//! waiting.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use ringwatch_tls::error::StartError;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;

/// Number of cores for which each kind of large work gets one thread.
const CORES_FOR_A_LARGE_THREAD: usize = 2;

/// Number of threads that each kind of large work has besides, which those who are neither administrators nor kubelets
/// leave free ([`ringwatch_flowcontrol::turns`]).
const SPARE_LARGE_THREADS: usize = 1;

/// Number of threads that each kind of large work has besides those that work. While these are busy, requests that come
/// or go on need one on which to ask for their turns.
const ASKING_THREADS: usize = 1;

/// Number of threads for tasks of the server that follow objects of clients, such as definitions, roles and nodes.
const BACKGROUND_THREADS: usize = 2;

/// Maximum time that blocking work may take at the end; then it is left behind.
const END_MAX: Duration = Duration::from_secs(1);

/// The threads of the server.
#[derive(Debug)]
pub struct Threads {
    /// Connections, watches, small requests and what feeds the watch caches: a worker for each core.
    pub serving: Runtime,
    large: Runtime,
    expressions: Runtime,
    background: Runtime,
}

/// Returns how many requests may work at a time on the threads of a runtime for large work.
pub(crate) fn large_turns(threads: &Handle) -> usize {
    let threads = threads.metrics().num_workers();
    threads.saturating_sub(ASKING_THREADS).max(1)
}

/// Handles of the runtimes other than the serving one.
#[derive(Clone, Debug)]
pub struct RuntimeHandles {
    /// The runtime of requests that work on many bytes.
    pub large: Handle,
    /// The runtime of requests whose cost does not follow from their bytes, such as those with CEL expressions.
    pub expressions: Handle,
    /// The runtime of the server's own tasks whose amount of work clients determine.
    pub background: Handle,
}

impl Threads {
    /// Starts a runtime for each purpose; their threads run until the value is dropped.
    ///
    /// # Errors
    /// [`StartError`] when the system allows no more threads.
    pub fn start() -> Result<Self, StartError> {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let that_work = cores.div_ceil(CORES_FOR_A_LARGE_THREAD) + SPARE_LARGE_THREADS;
        let of_large_work = Some(that_work + ASKING_THREADS);
        Ok(Self {
            serving: runtime("serving", None)?,
            large: runtime("large-work", of_large_work)?,
            expressions: runtime("expressions", of_large_work)?,
            background: runtime("background", Some(BACKGROUND_THREADS))?,
        })
    }

    /// Returns handles of the runtimes other than the serving one.
    #[must_use]
    pub fn handles(&self) -> RuntimeHandles {
        RuntimeHandles {
            large: self.large.handle().clone(),
            expressions: self.expressions.handle().clone(),
            background: self.background.handle().clone(),
        }
    }

    /// Ends the threads; blocking work that does not end within `END_MAX` is left behind.
    pub fn end(self) {
        for runtime in [self.serving, self.large, self.expressions, self.background] {
            runtime.shutdown_timeout(END_MAX);
        }
    }
}

/// Runs a task of the server until `end` is cancelled.
pub async fn until(end: CancellationToken, task: impl Future<Output = ()>) {
    end.run_until_cancelled(task).await;
}

/// Starts a runtime of so many threads, or of a thread for each core (`TOKIO_WORKER_THREADS`).
fn runtime(name: &str, threads: Option<usize>) -> Result<Runtime, StartError> {
    let mut builder = Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    let built = builder.enable_all().thread_name(name).build();
    built.map_err(|error| {
        StartError::new(
            "start threads",
            error,
            "raise the limit of threads (ulimit -u)",
        )
    })
}
