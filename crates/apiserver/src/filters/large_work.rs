//! Runs requests with large work on threads of their own, so that they do not block a worker.
//!
//! ```text
//!   worker --departure--> 429 | task on a thread for large work --answer--> worker
//! ```
//!
//! A request begins on the worker of its connection and asks to move before large work
//! ([`ringwatch_apimachinery::work`]). From then on it runs on one of a few threads for that kind of work, until it
//! ends or its client or deadline ends it. So large work occupies at most as many cores as there are such threads, and
//! requests that wait for them delay no others.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::Either;
use http::Response;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use ringwatch::budget::{Ledger, Share};
use ringwatch::clock::{Clock, Instant};
use ringwatch_apimachinery::work::{Audience, Departure, Movable, Progress, Work};
use ringwatch_apimachinery::{SERVICE_ACCOUNT_PREFIX, User, service_account};
use ringwatch_flowcontrol::fairness::TooMany;
use ringwatch_spans::carried;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::in_flight::is_privileged;
use crate::endpoints::ResponseBody;
use crate::endpoints::TextError;
use crate::threads::RuntimeHandles;

/// Maximum number of requests of a kind that run or wait for a thread; further ones are answered with 429.
const LARGE_REQUESTS_MAX: usize = 100;

/// Maximum number of these for one user who is no administrator.
const LARGE_REQUESTS_OF_A_USER_MAX: usize = 50;

/// The memory counted for a request whose content does not determine it.
const UNSIZED_BYTES: u64 = 1 << 20;

/// A request that is being answered.
pub type Answering = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;

/// The user whose request it is, as far as limits of each user go.
#[derive(Clone, Debug, Default)]
pub struct Requester {
    /// The user's name. All service accounts of a namespace count as one: whoever may make one has as many as they
    /// like.
    name: String,
    is_privileged: bool,
}

impl From<&User> for Requester {
    fn from(user: &User) -> Self {
        let name = match service_account(&user.name) {
            Some((namespace, _)) => format!("{SERVICE_ACCOUNT_PREFIX}{namespace}"),
            None => user.name.clone(),
        };
        Self {
            name,
            is_privileged: is_privileged(user),
        }
    }
}

/// Moves requests with large work to threads of their own.
#[derive(Clone, Debug)]
pub struct LargeWork {
    /// The threads for work on many bytes.
    large: Lane,
    /// The threads for work whose cost does not follow from its bytes, apart so that small requests do not wait for
    /// large ones.
    expressions: Lane,
    ledger: Ledger,
    /// Serializes requests while memory is short.
    alone: Arc<Semaphore>,
    metrics: Metrics,
    clock: Clock,
}

/// Threads, and the requests that run or wait there.
#[derive(Clone, Debug)]
struct Lane {
    threads: Handle,
    places: Places,
}

impl Lane {
    fn new(threads: &Handle) -> Self {
        Self {
            threads: threads.clone(),
            places: Places::default(),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// The numbers of places by user, for users who have any.
    of_users: HashMap<String, usize>,
}

/// A place; free again when dropped.
#[derive(Debug)]
struct Place {
    places: Places,
    user: String,
}

impl Places {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a request of a user. Administrators get one even when all are taken.
    fn enter(&self, requester: &Requester) -> Option<Place> {
        let mut taken = self.taken();
        let own = taken
            .of_users
            .get(&requester.name)
            .copied()
            .unwrap_or_default();
        let is_full = taken.all >= LARGE_REQUESTS_MAX || own >= LARGE_REQUESTS_OF_A_USER_MAX;
        if is_full && !requester.is_privileged {
            return None;
        }
        taken.all += 1;
        taken.of_users.insert(requester.name.clone(), own + 1);
        Some(Place {
            places: self.clone(),
            user: requester.name.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        if let Some(own) = taken.of_users.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.of_users.remove(&self.user);
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Metrics {
    waits: Family<Labels, Histogram, fn() -> Histogram>,
    runs: Family<Labels, Histogram, fn() -> Histogram>,
    requests: Gauge<i64, AtomicI64>,
    refused: Family<Labels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    work: &'static str,
}

impl Labels {
    fn new(work: Work) -> Self {
        let work = match work {
            Work::Body | Work::ProtobufBody => "body",
            Work::Object => "object",
            Work::Expressions => "expressions",
            Work::Permissions => "permissions",
        };
        Self { work }
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
        let metrics = Metrics::new();
        metrics.register(registry);
        Self {
            large: Lane::new(&threads.large),
            expressions: Lane::new(&threads.expressions),
            ledger,
            alone: Arc::new(Semaphore::new(1)),
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

    /// Answers a request on this thread, and on a thread for large work from where it asks to move.
    pub async fn answer(
        &self,
        request: Answering,
        requester: &Requester,
    ) -> Response<ResponseBody> {
        let answer = self.run(request, requester).await;
        answer.unwrap_or_else(|TooMany| TextError::TooManyRequests.response())
    }

    /// Runs a step of a request on this thread, and on a thread for large work from where it asks to move.
    ///
    /// # Errors
    /// [`TooMany`] if all places are taken.
    pub async fn run<T: Send + 'static>(
        &self,
        step: Pin<Box<dyn Future<Output = T> + Send>>,
        requester: &Requester,
    ) -> Result<T, TooMany> {
        match Movable::new(carried(step)).begin().await {
            Progress::Answered(answer) => Ok(answer),
            Progress::Leaves(departure, rest) => self.take_in(departure, rest, requester).await,
        }
    }

    fn lane(&self, work: Work) -> &Lane {
        match work {
            Work::Body | Work::ProtobufBody | Work::Object => &self.large,
            Work::Expressions | Work::Permissions => &self.expressions,
        }
    }

    async fn take_in<T: Send + 'static>(
        &self,
        departure: Departure,
        rest: Movable<T>,
        requester: &Requester,
    ) -> Result<T, TooMany> {
        let labels = Labels::new(departure.work);
        let lane = self.lane(departure.work);
        let Some(place) = lane.places.enter(requester) else {
            self.metrics.refused.get_or_create(&labels).inc();
            return Err(TooMany);
        };
        let since = self.clock.now();
        let memory = self.memory(departure).await;
        let stay = Stay {
            since,
            metrics: self.metrics.clone(),
            labels,
            clock: self.clock.clone(),
            _place: place,
            _memory: memory,
        };
        stay.metrics.requests.inc();
        let audience = rest.audience();
        let task = lane.threads.spawn(stay.run(rest));
        let _listener = Listener {
            task: task.abort_handle(),
            _audience: audience,
        };
        match task.await {
            Ok(answer) => Ok(answer),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The server is ending, and so is the connection.
            Err(_) => Err(TooMany),
        }
    }

    /// Admits the memory that a request may need. While memory is short requests run one at a time, since deleting
    /// large objects frees memory; the memory of that one is not counted, because that would evict history.
    async fn memory(&self, departure: Departure) -> Memory {
        let bytes = departure.memory.unwrap_or(UNSIZED_BYTES);
        match self.ledger.admit_large(bytes) {
            Ok(share) => Either::Left(share),
            Err(_) => Either::Right(Arc::clone(&self.alone).acquire_owned().await.ok()),
        }
    }
}

/// A request's share of memory, or its turn while there is none.
type Memory = Either<Share, Option<OwnedSemaphorePermit>>;

/// A request on the threads for large work.
struct Stay {
    /// The time at which it left its worker.
    since: Instant,
    metrics: Metrics,
    labels: Labels,
    clock: Clock,
    /// Held for its drop.
    _place: Place,
    /// Held for its drop.
    _memory: Memory,
}

impl Stay {
    async fn run<T>(self, rest: Movable<T>) -> T {
        let began = self.clock.now();
        let waited = began.duration_since(self.since).as_secs_f64();
        let waits = self.metrics.waits.get_or_create_owned(&self.labels);
        waits.observe(waited);
        let mut rest = Box::pin(rest.arrive());
        let mut ran = Duration::ZERO;
        let answer = poll_fn(|context| {
            let from = self.clock.now();
            let polled = rest.as_mut().poll(context);
            ran += self.clock.now().duration_since(from);
            polled
        });
        let answer = answer.await;
        let runs = self.metrics.runs.get_or_create_owned(&self.labels);
        runs.observe(ran.as_secs_f64());
        answer
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.metrics.requests.dec();
    }
}

/// The client's end of a request that has moved. When it is dropped, the request ends as soon as it can.
struct Listener {
    task: AbortHandle,
    /// Held for its drop.
    _audience: Audience,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Metrics {
    fn new() -> Self {
        Self {
            waits: Family::new_with_constructor(buckets),
            runs: Family::new_with_constructor(buckets),
            requests: Gauge::default(),
            refused: Family::default(),
        }
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(
            "ringwatch_large_work_wait_seconds",
            "Time from when a request asked to leave its worker until a thread for large work took it",
            self.waits.clone(),
        );
        registry.register(
            "ringwatch_large_work_run_seconds",
            "Time for which a request kept a thread for large work busy",
            self.runs.clone(),
        );
        registry.register(
            "ringwatch_large_work_requests",
            "Requests with large work that run or wait for a thread",
            self.requests.clone(),
        );
        registry.register(
            "ringwatch_large_work_refused",
            "Requests that were answered 429 because too many others had large work",
            self.refused.clone(),
        );
    }
}

fn buckets() -> Histogram {
    Histogram::new([0.000_1, 0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0])
}

#[cfg(test)]
mod tests {
    use std::thread::ThreadId;

    use prometheus_client::encoding::text::encode;

    use ringwatch::budget::Account;
    use ringwatch_apimachinery::work;
    use tokio::runtime::Builder;

    use super::*;
    use crate::endpoints::full;

    fn threads() -> tokio::runtime::Runtime {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).build().expect("a thread")
    }

    fn large_work(threads: &tokio::runtime::Runtime, ledger: &Ledger) -> LargeWork {
        let threads = RuntimeHandles {
            large: threads.handle().clone(),
            expressions: threads.handle().clone(),
            background: threads.handle().clone(),
        };
        let (ledger, clock) = (ledger.clone(), Clock::real());
        LargeWork::new(&threads, ledger, clock, &mut Registry::default())
    }

    /// Runs a test and ends the threads where that may block.
    fn run(test: impl AsyncFnOnce(LargeWork, Ledger)) {
        let threads = threads();
        let ledger = Ledger::new(1 << 30);
        let large = large_work(&threads, &ledger);
        let here = Builder::new_current_thread().build().expect("a runtime");
        here.block_on(test(large, ledger));
    }

    fn user(name: &str) -> Requester {
        Requester {
            name: name.to_owned(),
            is_privileged: false,
        }
    }

    fn thread_id() -> ThreadId {
        std::thread::current().id()
    }

    /// Returns the value of a metric, with its labels.
    fn shown(large: &LargeWork, name: &str) -> String {
        let mut registry = Registry::default();
        large.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).expect("text");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .unwrap_or_else(|| panic!("no {name} in {text}"))
            .to_owned()
    }

    #[test]
    fn large_work_is_done_on_another_thread_and_small_work_here() {
        run(async |large, ledger| {
            let worker = thread_id();
            let small = async move {
                work::at_size(Work::Body, b"{}").await;
                assert_eq!(thread_id(), worker);
                Response::new(full("small"))
            };
            let answer = large.answer(Box::pin(small), &user("ann")).await;
            assert_eq!(answer.status(), 200);
            let counted = ledger.clone();
            let heavy = async move {
                work::at_size(Work::Body, &[b'x'; 1 << 20]).await;
                assert_ne!(thread_id(), worker);
                assert_eq!(counted.total(), 16 << 20);
                Response::new(full("large"))
            };
            let answer = large.answer(Box::pin(heavy), &user("ann")).await;
            assert_eq!(answer.status(), 200);
        });
    }

    #[test]
    fn service_accounts_of_a_namespace_are_one_user() {
        let requester = |name: &str| {
            let mut user = User::default();
            name.clone_into(&mut user.name);
            Requester::from(&user).name
        };
        assert_eq!(
            requester("system:serviceaccount:a:x"),
            "system:serviceaccount:a"
        );
        assert_eq!(
            requester("system:serviceaccount:a:y"),
            "system:serviceaccount:a"
        );
        assert_eq!(requester("ann"), "ann");
    }

    #[test]
    fn more_than_there_are_places_for_are_told_to_come_again() {
        run(async |large, _| {
            let request = || -> Answering {
                Box::pin(async move {
                    work::leave(Work::Expressions).await;
                    std::future::pending().await
                })
            };
            let (ann, bob, eve) = (user("ann"), user("bob"), user("eve"));
            let admin = Requester {
                is_privileged: true,
                ..user("admin")
            };
            let half = |user| {
                let requests = (0..LARGE_REQUESTS_OF_A_USER_MAX).map(move |_| user);
                requests.map(|user| Box::pin(large.answer(request(), user)))
            };
            let mut waiting: Vec<_> = half(&ann).collect();
            for request in &mut waiting {
                assert!(futures::poll!(request).is_pending());
            }
            assert_eq!(large.answer(request(), &ann).await.status(), 429);
            waiting.extend(half(&bob));
            for request in waiting.iter_mut().skip(LARGE_REQUESTS_OF_A_USER_MAX) {
                assert!(futures::poll!(request).is_pending());
            }
            let refused = large.answer(request(), &eve).await;
            assert_eq!(refused.status(), 429);
            assert!(refused.headers().contains_key("retry-after"));
            assert_eq!(
                shown(
                    &large,
                    "ringwatch_large_work_refused_total{work=\"expressions\"}"
                ),
                "2"
            );
            assert_eq!(shown(&large, "ringwatch_large_work_requests"), "100");
            let mut privileged = Box::pin(large.answer(request(), &admin));
            assert!(futures::poll!(&mut privileged).is_pending());
            drop((waiting, privileged));
            let mut next = Box::pin(large.answer(request(), &eve));
            // Places are free once the requests that had them have ended.
            while large.expressions.places.taken().all > 0 {
                tokio::task::yield_now().await;
            }
            assert!(large.expressions.places.taken().of_users.is_empty());
            assert!(futures::poll!(&mut next).is_pending());
        });
    }

    #[test]
    fn requests_go_on_one_at_a_time_when_memory_is_short() {
        run(async |large, ledger| {
            let mut objects = ledger.share(Account::Objects);
            objects.set(ledger.limit());
            let (first, started) = tokio::sync::oneshot::channel();
            let (end, ended) = tokio::sync::oneshot::channel::<()>();
            let ann = user("ann");
            let one: Answering = Box::pin(async {
                work::leave(Work::Object).await;
                let _ = first.send(());
                let _ = ended.await;
                Response::new(full("first"))
            });
            let other: Answering = Box::pin(async {
                work::leave(Work::Object).await;
                Response::new(full("second"))
            });
            let (first, second) = (large.answer(one, &ann), large.answer(other, &ann));
            let (mut first, mut second) = (Box::pin(first), Box::pin(second));
            assert!(futures::poll!(&mut first).is_pending());
            started.await.expect("the first runs");
            assert!(futures::poll!(&mut second).is_pending());
            assert_eq!(large.alone.available_permits(), 0);
            assert_eq!(ledger.total(), ledger.limit());
            end.send(()).expect("the first waits");
            assert_eq!(first.await.status(), 200);
            assert_eq!(second.await.status(), 200);
        });
    }

    #[test]
    fn a_panic_is_that_of_the_request() {
        run(async |large, _| {
            let request: Answering = Box::pin(async {
                work::leave(Work::Expressions).await;
                panic!("as asked")
            });
            let ann = user("ann");
            let answer = std::panic::AssertUnwindSafe(large.answer(request, &ann));
            let panic = futures::FutureExt::catch_unwind(answer).await;
            assert!(panic.is_err());
        });
    }

    #[test]
    fn a_request_ends_with_its_client() {
        run(async |large, _| {
            let (ended, dropped) = tokio::sync::oneshot::channel::<()>();
            let request: Answering = Box::pin(async move {
                let _ended = ended;
                work::leave(Work::Expressions).await;
                std::future::pending().await
            });
            let ann = user("ann");
            let mut answer = Box::pin(large.answer(request, &ann));
            assert!(futures::poll!(&mut answer).is_pending());
            drop(answer);
            assert!(dropped.await.is_err(), "the request has been dropped");
        });
    }
}
