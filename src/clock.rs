//! The only place that reads time.
//!
//! Every layer takes a [`Clock`] as an argument. The real one reads the system's clocks; the
//! stepped one derives wall time from tokio's timer, which a test pauses and advances.

use std::time::Duration;

use jiff::Timestamp;
pub use tokio::time::{Instant, Sleep as Timer};

/// A source of monotonic and wall time.
#[derive(Clone, Debug)]
pub struct Clock {
    /// `None` reads the system; otherwise wall time is this origin plus what the timer advanced.
    origin: Option<(Timestamp, Instant)>,
}

impl Clock {
    /// The system's clocks.
    #[must_use]
    pub fn real() -> Self {
        Self { origin: None }
    }

    /// A clock that starts at `start` and moves only as tokio's (paused) timer is advanced.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the one place that reads time")]
    pub fn stepped(start: Timestamp) -> Self {
        Self {
            origin: Some((start, Instant::now())),
        }
    }

    /// Monotonic time, for deadlines and durations.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the one place that reads time")]
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Wall time, for what is written into objects.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "the one place that reads time")]
    pub fn wall(&self) -> Timestamp {
        match self.origin {
            None => Timestamp::now(),
            Some((start, from)) => {
                let advanced = self.now().duration_since(from);
                start.checked_add(advanced).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Completes after `duration`.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Completes at `deadline`.
    pub async fn sleep_until(&self, deadline: Instant) {
        self.timer(deadline).await;
    }

    /// Completes at `deadline`, as a type that can be kept.
    pub fn timer(&self, deadline: Instant) -> Timer {
        tokio::time::sleep_until(deadline)
    }
}
