//! Runs requests with large work on threads of their own, so that they do not block a worker, and in turns of their
//! users.
//!
//! ```text
//!   worker --OffloadRequest--> 429 | task on a thread for large work, in turns --answer--> worker
//! ```
//!
//! A request begins on the worker of its connection and asks to be offloaded before large work
//! ([`ringwatch_offload`]). From then on it runs on one of a few threads for that kind of work, until it
//! ends or its client or deadline ends it. So large work occupies at most as many cores as there are such threads, and
//! requests that wait for them delay no others.
//!
//! There are as many turns as threads that work, and each step of a request needs one
//! ([`ringwatch_flowcontrol::turns`]). So a user with much work delays nobody who has little, and administrators,
//! kubelets and all others have equal parts.

mod metrics;
mod queue;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use futures::future::Either;
use http::Response;
use prometheus_client::registry::Registry;
use ringwatch::budget::{Account, Ledger, Share};
use ringwatch::clock::{Clock, Instant};
use ringwatch_endpoints::TextError;
use ringwatch_flowcontrol::Requester;
use ringwatch_flowcontrol::fairness::TooMany;
use ringwatch_flowcontrol::turns::{Turn, Turns};
use ringwatch_http::ResponseBody;
use ringwatch_offload::{AbandonOnDrop, OffloadProgress, OffloadRequest, OffloadableRequest, Work};
use ringwatch_spans::carried;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use self::metrics::{LargeWorkLabels, LargeWorkMetrics};
use self::queue::{Queue, QueuePermit};
use crate::threads::{RuntimeHandles, large_turns};

/// The memory counted for a request whose content does not determine it.
const UNSIZED_BYTES: u64 = 1 << 20;

/// Number of requests that go on at a time while memory is short: one of all users, and one that is kept for
/// administrators and kubelets ([`ringwatch_flowcontrol::turns`]).
const SHORT_TURNS: usize = 2;

/// A request that is being answered.
pub type AnswerFuture = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;

/// Moves requests with large work to threads of their own.
#[derive(Clone, Debug)]
pub struct LargeWork {
    /// The threads for work on many bytes.
    large: Pool,
    /// The threads for work whose cost does not follow from its bytes, apart so that small requests do not wait for
    /// large ones.
    expressions: Pool,
    ledger: Ledger,
    /// The turns of the requests that go on while memory is short.
    alone: Turns,
    metrics: LargeWorkMetrics,
    clock: Clock,
}

/// Threads, and the requests that run or wait there.
#[derive(Clone, Debug)]
struct Pool {
    threads: Handle,
    queue: Queue,
    turns: Turns,
}

impl Pool {
    fn new(threads: &Handle) -> Self {
        Self {
            threads: threads.clone(),
            queue: Queue::default(),
            turns: Turns::new(large_turns(threads)),
        }
    }
}

impl LargeWork {
    /// Moves large work to these threads, within the memory budget of the ledger.
    #[must_use]
    pub fn new(
        threads: &RuntimeHandles,
        ledger: Ledger,
        clock: Clock,
        registry: &mut Registry,
    ) -> Self {
        let metrics = LargeWorkMetrics::new();
        metrics.register(registry);
        Self {
            large: Pool::new(&threads.large),
            expressions: Pool::new(&threads.expressions),
            ledger,
            alone: Turns::new(SHORT_TURNS),
            metrics,
            clock,
        }
    }

    /// Moves large work to the runtime that is running, without limits of memory.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn on_current_runtime() -> Self {
        let threads = RuntimeHandles {
            large: Handle::current(),
            expressions: Handle::current(),
            background: Handle::current(),
        };
        let ledger = Ledger::unlimited();
        Self::new(&threads, ledger, Clock::real(), &mut Registry::default())
    }

    /// Answers a request on this thread, and on a thread for large work from where it asks to be offloaded.
    pub async fn answer(
        &self,
        request: AnswerFuture,
        requester: &Requester,
    ) -> Response<ResponseBody> {
        let answer = self.run(request, requester).await;
        answer.unwrap_or_else(|TooMany| TextError::TooManyRequests.response())
    }

    /// Runs a step of a request on this thread, and on a thread for large work from where it asks to be offloaded.
    ///
    /// # Errors
    /// [`TooMany`] if the user or all have as many such requests as they may.
    pub async fn run<T: Send + 'static>(
        &self,
        step: Pin<Box<dyn Future<Output = T> + Send>>,
        requester: &Requester,
    ) -> Result<T, TooMany> {
        match OffloadableRequest::new(carried(step)).start().await {
            OffloadProgress::Answered(answer) => Ok(answer),
            OffloadProgress::Offload(asked, rest) => {
                self.run_offloaded(asked, rest, requester).await
            }
        }
    }

    fn pool(&self, work: Work) -> &Pool {
        match work {
            Work::Body | Work::ProtobufBody | Work::Object => &self.large,
            Work::Expressions | Work::Permissions => &self.expressions,
        }
    }

    async fn run_offloaded<T: Send + 'static>(
        &self,
        asked: OffloadRequest,
        rest: OffloadableRequest<T>,
        requester: &Requester,
    ) -> Result<T, TooMany> {
        let labels = LargeWorkLabels::new(asked.work);
        let pool = self.pool(asked.work);
        let Some(permit) = pool.queue.enter(requester, asked.bytes) else {
            self.metrics.refused.get_or_create(&labels).inc();
            return Err(TooMany);
        };
        let mut content = self.ledger.share(Account::Requests);
        content.set(asked.bytes as u64);
        self.metrics.requests.inc();
        let offloaded = OffloadedRequest {
            since: self.clock.now(),
            large: self.clone(),
            labels,
            requester: requester.clone(),
            permit,
            content,
        };
        let abandon = rest.abandon_on_drop();
        let (turns, clock, requester) = (pool.turns.clone(), self.clock.clone(), requester.clone());
        let task = pool.threads.spawn(async move {
            let steps = offloaded.run(asked.memory.unwrap_or(UNSIZED_BYTES), rest);
            turns.do_in_steps(&requester, &clock, steps).await
        });
        let _abort = AbortOnDrop {
            task: task.abort_handle(),
            _abandon: abandon,
        };
        match task.await {
            Ok(answer) => Ok(answer),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The server is ending, and so is the connection.
            Err(_) => Err(TooMany),
        }
    }
}

/// A request's share of memory, or its turn while there is none.
type Memory = Either<Share, SoleTurn>;

/// A turn while memory is short. It counts from when it is given until it is dropped: others wait for it meanwhile,
/// whether the request works or waits for somebody itself.
struct SoleTurn {
    turn: Turn,
    since: Instant,
    clock: Clock,
}

impl Drop for SoleTurn {
    fn drop(&mut self) {
        self.turn.uses(self.clock.now().duration_since(self.since));
    }
}

/// A request on the threads for large work.
struct OffloadedRequest {
    /// The time at which it asked to be offloaded.
    since: Instant,
    large: LargeWork,
    labels: LargeWorkLabels,
    requester: Requester,
    permit: QueuePermit,
    /// The memory of its content while it waits.
    content: Share,
}

impl OffloadedRequest {
    async fn run<T>(mut self, bytes: u64, rest: OffloadableRequest<T>) -> T {
        let _memory = self.memory(bytes).await;
        let (metrics, clock) = (&self.large.metrics, &self.large.clock);
        let waited = clock.now().duration_since(self.since).as_secs_f64();
        let waits = metrics.waits.get_or_create_owned(&self.labels);
        waits.observe(waited);
        let mut rest = Box::pin(rest.resume());
        let mut ran = Duration::ZERO;
        let answer = poll_fn(|context| {
            let from = clock.now();
            let polled = rest.as_mut().poll(context);
            ran += clock.now().duration_since(from);
            polled
        });
        let answer = answer.await;
        let runs = metrics.runs.get_or_create_owned(&self.labels);
        runs.observe(ran.as_secs_f64());
        answer
    }

    /// Admits the memory that the request may need. While memory is short requests go on in turn, [`SHORT_TURNS`] at a
    /// time, since deleting large objects frees memory; the memory of these is not counted, because that would evict
    /// history.
    async fn memory(&mut self, bytes: u64) -> Memory {
        let memory = match self.large.ledger.admit_large(bytes) {
            Ok(share) => Either::Left(share),
            Err(_) => Either::Right(self.sole_turn().await),
        };
        self.permit.begin();
        self.content.set(0);
        memory
    }

    async fn sole_turn(&self) -> SoleTurn {
        let turn = self.large.alone.take(&self.requester).await;
        let clock = self.large.clock.clone();
        SoleTurn {
            turn,
            since: clock.now(),
            clock,
        }
    }
}

impl Drop for OffloadedRequest {
    fn drop(&mut self) {
        self.large.metrics.requests.dec();
    }
}

/// Ends an offloaded request as soon as it can be, when its client or deadline drops this.
struct AbortOnDrop {
    task: AbortHandle,
    /// Held for its drop.
    _abandon: AbandonOnDrop,
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests;
