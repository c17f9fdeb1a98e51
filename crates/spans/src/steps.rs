//! The steps of a request, timed so that one that takes long can be told in the log.
//!
//! Like the current span, the steps that are being recorded belong to the future that runs in [`Steps::record`]. Where
//! none are, [`step`] reads one thread-local value and does no more.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringwatch::clock::{Clock, Instant};

/// Maximum number of steps of a request that are kept; of more the first are.
const STEPS_MAX: usize = 32;

thread_local! {
    /// The steps of the request that this thread works for.
    static CURRENT: RefCell<Option<Arc<Steps>>> = const { RefCell::new(None) };
}

/// The steps of a request since it began.
#[derive(Debug)]
pub struct Steps {
    began: Instant,
    clock: Clock,
    records: Mutex<Vec<Record>>,
}

/// A step with its times since the request began.
#[derive(Debug)]
struct Record {
    name: Cow<'static, str>,
    from: Duration,
    /// `None` while it lasts.
    until: Option<Duration>,
}

/// A step that lasts until this is dropped.
#[derive(Debug)]
pub struct Step {
    steps: Arc<Steps>,
    place: usize,
}

/// Sets the steps of this thread, and sets back those of before when it is dropped.
struct EnteredSteps(Option<Arc<Steps>>);

/// Starts a step of the request that is being handled, unless its steps are not recorded.
#[must_use]
pub fn step(name: impl Into<Cow<'static, str>>) -> Option<Step> {
    CURRENT.with_borrow(|current| {
        let steps = current.as_ref()?;
        let place = steps.begin(name.into())?;
        Some(Step {
            steps: Arc::clone(steps),
            place,
        })
    })
}

impl Steps {
    /// Begins to record the steps of a request.
    #[must_use]
    pub fn new(clock: &Clock) -> Arc<Self> {
        Arc::new(Self {
            began: clock.now(),
            clock: clock.clone(),
            records: Mutex::default(),
        })
    }

    /// Runs a future whose steps are these.
    pub async fn record<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let _entered = EnteredSteps(CURRENT.replace(Some(Arc::clone(self))));
            future.as_mut().poll(context)
        })
        .await
    }

    /// Returns the time since the request began.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.clock.now().duration_since(self.began)
    }

    /// Returns the steps that took more than their share of a time, in the order in which they began, as
    /// `---"NAME" 12ms (at 3ms)` each.
    #[must_use]
    pub fn longest(&self, of: Duration) -> String {
        let records = self.records.lock();
        let records = records.unwrap_or_else(PoisonError::into_inner);
        let share = of / u32::try_from(records.len() + 1).unwrap_or(u32::MAX);
        let total = self.total();
        let mut text = String::new();
        for Record { name, from, until } in &*records {
            let took = until.unwrap_or(total).saturating_sub(*from);
            if took >= share {
                let gap = if text.is_empty() { "" } else { " " };
                let (took, from) = (took.as_millis(), from.as_millis());
                // Text can always be written to.
                let _ = write!(text, "{gap}---{name:?} {took}ms (at {from}ms)");
            }
        }
        text
    }

    /// Adds a step, and returns its place; `None` when there are too many.
    fn begin(&self, name: Cow<'static, str>) -> Option<usize> {
        let from = self.total();
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let place = records.len();
        if place == STEPS_MAX {
            return None;
        }
        records.push(Record {
            name,
            from,
            until: None,
        });
        Some(place)
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        let until = self.steps.total();
        let records = self.steps.records.lock();
        let mut records = records.unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = records.get_mut(self.place) {
            record.until = Some(until);
        }
    }
}

impl Drop for EnteredSteps {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A_SECOND: Duration = Duration::from_secs(1);

    async fn sleep(clock: &Clock, name: &'static str, milliseconds: u64) {
        let _step = step(name);
        clock.sleep(Duration::from_millis(milliseconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn long_steps_are_told_with_their_times() {
        let clock = Clock::real();
        let steps = Steps::new(&clock);
        let recorded = steps.record(async {
            sleep(&clock, "read", 20).await;
            let _whole = step("write");
            tokio::join!(sleep(&clock, "ask", 700), sleep(&clock, "tell", 5));
        });
        recorded.await;
        assert_eq!(steps.total(), Duration::from_millis(720));
        assert_eq!(
            steps.longest(A_SECOND),
            "---\"write\" 700ms (at 20ms) ---\"ask\" 700ms (at 20ms)"
        );
        assert!(step("after it").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_on_one_thread_have_their_own_steps() {
        let clock = Clock::real();
        let both = [Steps::new(&clock), Steps::new(&clock)];
        let [one, other] = &both;
        tokio::join!(
            one.record(sleep(&clock, "one", 900)),
            other.record(sleep(&clock, "other", 800)),
            sleep(&clock, "neither", 1_000)
        );
        let told = both.map(|it| it.longest(A_SECOND));
        assert_eq!(
            told,
            ["---\"one\" 900ms (at 0ms)", "---\"other\" 800ms (at 0ms)"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_with_many_steps_keeps_the_first() {
        let clock = Clock::real();
        let steps = Steps::new(&clock);
        let many = steps.record(async {
            for _ in 0..=STEPS_MAX {
                sleep(&clock, "again", 1).await;
            }
        });
        many.await;
        let told = steps.longest(Duration::ZERO);
        assert_eq!(told.matches("---").count(), STEPS_MAX);
    }
}
