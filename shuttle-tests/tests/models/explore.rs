//! Running a model under many schedules, and proving that they differed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};

/// What the schedules are drawn from, unless `SHUTTLE_RANDOM_SEED` says otherwise.
const SEED: u64 = 0x0072_696e_6777_6174;

/// How often a schedule of the second half changes its mind about who goes first.
const PRIORITY_CHANGES: usize = 5;

/// How many steps a schedule takes at most: one that takes more has lost a wake-up or spins.
const STEPS_MAX: usize = 300_000;

/// What a task may use of its stack. Parsing JSON in an unoptimised build takes a lot.
const STACK_BYTES: usize = 1 << 20;

/// The outcomes that a model has seen, over all schedules, and how often.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Seen {
    /// Notes an outcome.
    pub(crate) fn note(&self, outcome: &'static str) {
        *self.outcomes().entry(outcome).or_default() += 1;
    }

    fn outcomes(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a model under so many schedules: half of them choose the next task at random, half let the
/// task of the highest random priority go on. Each of the outcomes must have been seen.
///
/// The first half's failures are reproduced by the seed that is printed, in `SHUTTLE_RANDOM_SEED`,
/// those of both by the schedule that is printed, in `shuttle::replay`.
pub(crate) fn explore(
    schedules: usize,
    outcomes: &[&'static str],
    model: impl Fn(&Seen) + Sync + Send + 'static,
) {
    let seen = Seen::default();
    let model = Arc::new(model);
    let half = schedules / 2;
    let random = RandomScheduler::new_from_seed(SEED, schedules - half);
    run(random, &seen, Arc::clone(&model));
    let by_priority = PctScheduler::new_from_seed(SEED, PRIORITY_CHANGES, half);
    run(by_priority, &seen, model);
    let saw = seen.outcomes().clone();
    println!("{schedules} schedules saw {saw:?}");
    for outcome in outcomes {
        assert!(saw.contains_key(outcome), "no schedule saw {outcome:?}");
    }
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
