//! The only place that reads time and waits for it.
//!
//! Every layer takes a [`Clock`] as an argument. The real one reads the system's clocks; the
//! stepped one derives wall time from tokio's timer, which a test pauses and advances. Clippy refuses
//! `Instant::now`, `tokio::time::sleep`, `tokio::time::timeout` and the like anywhere else; tests and
//! the load generator, which measure from outside, say that they are exceptions.
//!
//! ```
//! use std::time::Duration;
//!
//! use ringwatch::clock::Clock;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let clock = Clock::real();
//! let at_most = Duration::from_secs(1);
//! let answer = clock.timeout(at_most, async { "in time" }).await;
//! assert_eq!(answer, Ok("in time"));
//!
//! let never = std::future::pending::<()>();
//! assert!(clock.timeout(at_most, never).await.is_err());
//! # }
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "the one place that reads time and waits for it"
)]

use std::time::Duration;

use jiff::Timestamp;
pub use tokio::time::error::Elapsed;
pub use tokio::time::{Instant, Sleep as Timer, Timeout};

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
    pub fn stepped(start: Timestamp) -> Self {
        Self {
            origin: Some((start, Instant::now())),
        }
    }

    /// Monotonic time, for deadlines and durations.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Wall time, for what is written into objects.
    #[must_use]
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

    /// Bounds `future` by `duration`: resolves to its output, or to [`Elapsed`] if that comes first.
    ///
    /// A future that is ready when it is polled wins over a bound that has passed. It is dropped with
    /// the [`Timeout`], not when time is up; pass a `&mut` to a pinned one to go on with it.
    ///
    /// # Errors
    /// [`Elapsed`] once `duration` has passed since the call.
    pub fn timeout<F: IntoFuture>(&self, duration: Duration, future: F) -> Timeout<F::IntoFuture> {
        tokio::time::timeout(duration, future)
    }
}
