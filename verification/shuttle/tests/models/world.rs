//! A store, a feed of it, and time.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use shuttle::future::{JoinHandle, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::budget::Ledger;
use shuttle_tests::clock::{Clock, Instant};
use shuttle_tests::storage::cacher::{
    CacheDelegator, CacheMetrics, Feed, TypeConfig, WindowLimits,
};
use shuttle_tests::sync::{Arc, Ordering, oneshot};

use crate::store::Store;

/// The time by which the clock moves in a step: far less than the time that a read waits.
const TICK: Duration = Duration::from_millis(20);

/// The time by which the clock moves in a step where nobody is to give up while there is something to do.
const SLOW_TICK: Duration = Duration::from_millis(1);

/// The time by which the clock jumps now and then: to the next bookmarks.
const JUMP: Duration = Duration::from_secs(61);

/// One tick of so many is a jump.
const JUMP_ONE_IN: u32 = 60;

/// The most time that a read waits for its revision.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// The pace at which time passes in a model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// With jumps, so that bookmarks come and reads give up.
    Quick,
    /// With steps so small that a read gives up only if nobody answers it.
    Slow,
    /// Not at all.
    Still,
}

/// Everything that the tasks of a model share.
pub(crate) struct World {
    pub(crate) store: Arc<Store>,
    pub(crate) feed: Feed,
    pub(crate) pods: Arc<CacheDelegator>,
    pub(crate) clock: Clock,
    pub(crate) ledger: Ledger,
    pace: Pace,
    /// The revision that the cache had reached just before its watches were drained; 0 until then.
    pub(crate) drained: AtomicUsize,
    over: AtomicBool,
}

/// The tasks that end with the world.
pub(crate) struct Running {
    world: Arc<World>,
    shutdown: oneshot::Sender<()>,
    feed: JoinHandle<()>,
    time: JoinHandle<()>,
}

impl World {
    /// Returns a world whose feed runs and whose time passes.
    pub(crate) fn start(store: Store, limits: WindowLimits) -> (Arc<Self>, Running) {
        Self::start_at(Pace::Quick, store, limits)
    }

    /// Returns the same with time at another pace.
    pub(crate) fn start_at(pace: Pace, store: Store, limits: WindowLimits) -> (Arc<Self>, Running) {
        Self::start_within(Ledger::unlimited(), pace, store, limits)
    }

    /// Returns the same once the pods have been listed.
    pub(crate) async fn ready(pace: Pace, store: Store) -> (Arc<Self>, Running) {
        let (world, running) = Self::start_at(pace, store, WindowLimits::default());
        world.pods.cacher().ready().await.expect("listed");
        (world, running)
    }

    /// Returns the same within a budget of memory.
    pub(crate) fn start_within(
        ledger: Ledger,
        pace: Pace,
        store: Store,
        limits: WindowLimits,
    ) -> (Arc<Self>, Running) {
        let (store, clock) = (Arc::new(store), Clock::standing());
        let source = Arc::clone(&store);
        let metrics = CacheMetrics::default();
        let (feed, reflector) = Feed::new(source, clock.clone(), metrics, ledger.clone());
        let pods = add_type(&feed, &store, "pods", limits);
        let world = Arc::new(Self {
            pods,
            store,
            feed,
            clock,
            ledger,
            pace,
            drained: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let (shutdown, stopped) = oneshot::channel();
        let feed = spawn(reflector.run(async move {
            let _ = stopped.await;
        }));
        let running = Running {
            world: Arc::clone(&world),
            shutdown,
            feed,
            time: spawn(pass_time(Arc::clone(&world), pace)),
        };
        (world, running)
    }

    /// Adds a type while the feed runs.
    pub(crate) fn add_type(&self, resource: &str) -> Arc<CacheDelegator> {
        add_type(&self.feed, &self.store, resource, WindowLimits::default())
    }

    /// Notes that a read which began then has given up at its deadline. That is a failure where time is so slow that it
    /// would have been woken long before.
    pub(crate) fn gave_up(&self, begun: Instant) {
        let waited = self.clock.now() - begun;
        assert!(waited >= WAIT_MAX, "it gave up after {waited:?}");
        assert!(self.pace == Pace::Quick, "a read waited in vain");
    }
}

impl Running {
    /// Waits for the tasks of a model, then stops.
    pub(crate) async fn finish(self, tasks: Vec<JoinHandle<()>>) {
        for task in tasks {
            task.await.expect("a task ends");
        }
        self.stop().await;
    }

    /// Ends the feed, then time.
    pub(crate) async fn stop(self) {
        let _ = self.shutdown.send(());
        self.feed.await.expect("the feed ends");
        self.world.over.store(true, Ordering::SeqCst);
        self.time.await.expect("time ends");
    }
}

async fn pass_time(world: Arc<World>, pace: Pace) {
    while !world.over.load(Ordering::SeqCst) {
        let tick = match pace {
            Pace::Quick if thread_rng().gen_ratio(1, JUMP_ONE_IN) => JUMP,
            Pace::Quick => TICK,
            Pace::Slow => SLOW_TICK,
            Pace::Still => return,
        };
        world.clock.advance(tick);
        yield_now().await;
    }
}

fn add_type(
    feed: &Feed,
    store: &Arc<Store>,
    resource: &str,
    window: WindowLimits,
) -> Arc<CacheDelegator> {
    let cacher = feed.add_type(TypeConfig::new("", resource).with_window(window));
    let store = Arc::clone(store);
    Arc::new(CacheDelegator::new(cacher, store))
}
