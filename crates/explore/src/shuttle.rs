//! Running a model under many random schedules with shuttle.
//!
//! Each model runs under the same schedules every time, and then under new ones for as many seconds as
//! `NEW_SEEDS_SECONDS` says, if it is set. The seed of the new ones is printed before they run, and by a
//! failure once more; `SHUTTLE_RANDOM_SEED` makes a run try that seed and no other.
//!
//! ```
//! use ringwatch_explore::shuttle::explore;
//! use ringwatch_explore::shuttle::sync::{Arc, AtomicU64, Ordering};
//!
//! explore(100, &["early", "late"], |seen| {
//!     let value = Arc::new(AtomicU64::new(0));
//!     let written = Arc::clone(&value);
//!     let writer = shuttle::thread::spawn(move || written.store(1, Ordering::SeqCst));
//!     let early = value.load(Ordering::SeqCst) == 0;
//!     seen.note(if early { "early" } else { "late" });
//!     writer.join().expect("the writer does not panic");
//! });
//! ```

pub mod sync;

use std::any::type_name;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, thread};

use ::shuttle::future::block_on;
use ::shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use ::shuttle::{Config, MaxSteps, Runner};

/// The seed of the schedules that every run tries.
const SEED: u64 = 0x0072_696e_6777_6174;

/// The variable that shuttle itself takes the seed from, whatever a scheduler is given.
const GIVEN_SEED: &str = "SHUTTLE_RANDOM_SEED";

/// The variable with the seconds for which each model goes on with new seeds.
const NEW_SEEDS_SECONDS: &str = "NEW_SEEDS_SECONDS";

/// Number of schedules that are drawn from a new seed. Every model has more, so a run with the seed given repeats them
/// all.
const SCHEDULES_OF_A_NEW_SEED: usize = 10;

/// Number of priority changes in a schedule of the second half.
const PRIORITY_CHANGES: usize = 5;

/// Maximum number of steps of a schedule: one that takes more has lost a wake-up or spins.
const STEPS_MAX: usize = 300_000;

/// Stack of a task. Parsing JSON in an unoptimised build takes a lot.
const STACK_BYTES: usize = 1 << 20;

/// The outcomes that a model has seen, over all schedules, and how often.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Seen {
    /// Notes an outcome of this schedule.
    pub fn note(&self, outcome: &'static str) {
        *self.outcomes().entry(outcome).or_default() += 1;
    }

    /// Returns true if an outcome has been noted.
    #[must_use]
    pub fn has(&self, outcome: &'static str) -> bool {
        self.outcomes().contains_key(outcome)
    }

    fn outcomes(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a model under so many schedules of the fixed seed, or of the one in `SHUTTLE_RANDOM_SEED`; each
/// of the outcomes must have been seen. Without a given seed it goes on with new ones, if `NEW_SEEDS_SECONDS` is set.
///
/// The model runs once for each schedule, and starts from nothing each time. A schedule takes at most
/// 300,000 steps; one that takes more has lost a wake-up or spins.
///
/// # Panics
///
/// If a schedule panics, deadlocks or takes too many steps, if no schedule of the first seed saw an outcome, if
/// `schedules` is less than 10, or if a variable is not a number. The last line on standard error is
/// then the command that tries the seed again.
pub fn explore<M>(schedules: usize, outcomes: &[&'static str], model: M)
where
    M: Fn(&Seen) + Sync + Send + 'static,
{
    explore_named(name_of::<M>(), schedules, outcomes, model);
}

/// Runs a model that is a future in the same way.
///
/// # Panics
///
/// As [`explore`].
pub fn explore_future<M, F>(schedules: usize, outcomes: &[&'static str], model: M)
where
    M: Fn(Seen) -> F + Sync + Send + 'static,
    F: Future<Output = ()>,
{
    explore_named(name_of::<M>(), schedules, outcomes, move |seen: &Seen| {
        block_on(model(seen.clone()));
    });
}

fn explore_named(
    name: &'static str,
    schedules: usize,
    outcomes: &[&'static str],
    model: impl Fn(&Seen) + Sync + Send + 'static,
) {
    assert!(
        schedules >= SCHEDULES_OF_A_NEW_SEED,
        "{schedules} schedules"
    );
    let seen = Seen::default();
    let model = Arc::new(model);
    let given = env::var(GIVEN_SEED).ok();
    let given: Option<u64> = given.map(|seed| seed.parse().expect("a number"));
    try_seed(name, given.unwrap_or(SEED), schedules, &seen, &model);
    let saw = seen.outcomes().clone();
    println!("{schedules} schedules saw {saw:?}");
    for outcome in outcomes {
        assert!(saw.contains_key(outcome), "no schedule saw {outcome:?}");
    }
    if given.is_none() {
        try_new_seeds(name, &model);
    }
}

/// Runs a model under schedules of new seeds until its time is over.
#[allow(clippy::disallowed_methods, reason = "the time that a run may take")]
fn try_new_seeds<M>(name: &'static str, model: &Arc<M>)
where
    M: Fn(&Seen) + Sync + Send + 'static,
{
    let Ok(seconds) = env::var(NEW_SEEDS_SECONDS) else {
        return;
    };
    let seconds = seconds.parse().expect("a number of seconds");
    let (begun, limit) = (Instant::now(), Duration::from_secs(seconds));
    while begun.elapsed() < limit {
        // Each state hashes with random keys of its own.
        let seed = RandomState::new().build_hasher().finish();
        println!("new seed {seed}");
        try_seed(name, seed, SCHEDULES_OF_A_NEW_SEED, &Seen::default(), model);
    }
}

/// Runs a model under so many schedules of a seed: half of them choose the next task at random, half let
/// the task of the highest random priority go on.
fn try_seed<M>(name: &'static str, seed: u64, schedules: usize, seen: &Seen, model: &Arc<M>)
where
    M: Fn(&Seen) + Sync + Send + 'static,
{
    let _attempt = Attempt { model: name, seed };
    let half = schedules / 2;
    let random = RandomScheduler::new_from_seed(seed, schedules - half);
    run(random, seen, Arc::clone(model));
    let by_priority = PctScheduler::new_from_seed(seed, PRIORITY_CHANGES, half);
    run(by_priority, seen, Arc::clone(model));
}

/// A seed that is being tried. A failure says how to try it again.
struct Attempt {
    model: &'static str,
    seed: u64,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self { model, seed } = self;
            // cargo says so to each test that it runs.
            let package = env::var("CARGO_PKG_NAME").map(|name| format!("--package {name} "));
            let package = package.unwrap_or_default();
            eprintln!("again: {GIVEN_SEED}={seed} cargo test {package}{model}");
        }
    }
}

/// Returns the name of the test that a model is a closure of, without that of the crate.
fn name_of<M>() -> &'static str {
    let name = type_name::<M>();
    let name = name.split_once("::").map_or(name, |(_, name)| name);
    name.trim_end_matches("::{{closure}}")
}

fn run(
    scheduler: impl Scheduler + 'static,
    seen: &Seen,
    model: Arc<impl Fn(&Seen) + Sync + Send + 'static>,
) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    let seen = seen.clone();
    Runner::new(scheduler, config).run(move || model(&seen));
}
