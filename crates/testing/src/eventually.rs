//! Waiting in a test for a condition, with a deadline.
//!
//! A test never sleeps for a time in which something should have happened: it looks again and again until it has, and
//! fails past a deadline with what it saw last. A condition that holds ends the wait, so a generous deadline costs a
//! passing test nothing.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Deadline for what takes at most some seconds on a quiet machine. A machine that is four times slower, or shared by
/// four, meets it.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Pause between two looks.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// A condition as it was seen at one look.
pub trait Condition {
    /// The value that a condition gives to the test when it holds.
    type Value;

    /// Returns the value of a condition that holds.
    ///
    /// # Errors
    /// Words about a condition that does not hold, which are told if it was the last look.
    fn check(self) -> Result<Self::Value, String>;
}

impl Condition for bool {
    type Value = ();

    fn check(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(String::new)
    }
}

impl<T> Condition for Option<T> {
    type Value = T;

    fn check(self) -> Result<T, String> {
        self.ok_or_else(String::new)
    }
}

impl<T, E: Debug> Condition for Result<T, E> {
    type Value = T;

    fn check(self) -> Result<T, String> {
        self.map_err(|error| format!("; seen last: {error:?}"))
    }
}

/// Looks until a condition holds, and returns its value: nothing for `bool`, what is in an `Option` or a `Result`.
///
/// It reads tokio's clock, so a paused one runs on to the next look.
///
/// # Panics
/// Past the deadline, with `what`, the place of the call and the last error. A look that has begun is not broken off.
#[track_caller]
pub fn eventually<C: Condition>(
    deadline: Duration,
    what: impl Display,
    mut look: impl AsyncFnMut() -> C,
) -> impl Future<Output = C::Value> {
    let caller = Location::caller();
    async move {
        let end = Instant::now() + deadline;
        loop {
            match look().await.check() {
                Ok(value) => return value,
                Err(seen) if Instant::now() >= end => {
                    panic!("{caller}: not within {deadline:?}: {what}{seen}")
                }
                Err(_) => sleep(LOOK_PERIOD).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looks_until_the_condition_holds() {
        let mut looks = 0;
        let third = eventually(DEADLINE, "a third look", async || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(third.await, 3);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 2s: an answer; seen last: \"refused\"")]
    async fn past_the_deadline_the_last_error_is_told() {
        let answer = eventually(Duration::from_secs(2), "an answer", async || {
            Err::<(), _>("refused")
        });
        answer.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_holds_at_once_is_looked_at_past_a_deadline_too() {
        eventually(Duration::ZERO, "it holds", async || true).await;
    }
}
