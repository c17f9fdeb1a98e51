//! The only place that reads time and waits for it.
//!
//! Every layer takes a [`Clock`] as an argument. The real one reads the system's clocks; the stepped one derives wall
//! time from tokio's timer, which a test pauses and advances; the manual one stands still until [`Clock::advance`]
//! moves it, for any number of threads at once. Clippy refuses `Instant::now`, `tokio::time::sleep`,
//! `tokio::time::timeout` and the like anywhere else; tests and the load generator, which measure from outside, allow
//! them explicitly.
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
    clippy::disallowed_types,
    reason = "the one place that reads time and waits for it"
)]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::Either;
use jiff::Timestamp;
pub use tokio::time::Instant;

/// The error of a future that was not ready in time. Retry, with more time if the work is known to take longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deadline has elapsed")]
pub struct Elapsed;

/// A source of monotonic and wall time.
#[derive(Clone, Debug)]
pub struct Clock {
    time: Time,
}

#[derive(Clone, Debug)]
enum Time {
    /// The system's clocks.
    Real,
    /// Wall time is this origin plus what tokio's timer advanced.
    Stepped(Timestamp, Instant),
    Manual(Arc<Manual>),
}

/// The state of a manual clock.
#[derive(Debug)]
struct Manual {
    /// The wall time and the monotonic time at which the clock began.
    start: Timestamp,
    origin: Instant,
    moved: Mutex<ManualTime>,
}

/// The time of a manual clock, and the timers that wait for it.
#[derive(Debug, Default)]
struct ManualTime {
    elapsed: Duration,
    /// The timers that wait; one that is dropped is removed.
    sleepers: Vec<Sleeper>,
    /// The number of the next timer.
    next: u64,
}

#[derive(Debug)]
struct Sleeper {
    number: u64,
    deadline: Instant,
    waker: Waker,
}

/// Completes at a deadline of the [`Clock`] that made it.
#[derive(Debug)]
pub struct Timer {
    wait: Wait,
}

#[derive(Debug)]
enum Wait {
    /// Boxed, so that a timer can be moved.
    Tokio(Pin<Box<tokio::time::Sleep>>),
    Manual(Box<ManualWait>),
}

#[derive(Debug)]
struct ManualWait {
    clock: Arc<Manual>,
    deadline: Instant,
    /// The timer's number among the sleepers, once it has waited.
    number: Option<u64>,
}

impl Clock {
    /// Returns the clock of the system.
    #[must_use]
    pub fn real() -> Self {
        Self { time: Time::Real }
    }

    /// Creates a clock that starts at `start` and advances only with tokio's (paused) timer.
    #[must_use]
    pub fn stepped(start: Timestamp) -> Self {
        Self {
            time: Time::Stepped(start, Instant::now()),
        }
    }

    /// Creates a clock that stands still at `start` until [`advance`](Self::advance) moves it. Its clones are the same
    /// clock, so threads that share it see one time; it does not use tokio's timer.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use ringwatch::clock::Clock;
    ///
    /// let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
    /// let before = clock.now();
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(clock.now() - before, Duration::from_secs(60));
    /// assert_eq!(clock.wall().as_second(), 60);
    /// ```
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self {
            time: Time::Manual(Arc::new(Manual {
                start,
                origin: Instant::now(),
                moved: Mutex::default(),
            })),
        }
    }

    /// Advances a manual clock by `by`, and wakes the timers whose deadline has come.
    ///
    /// # Panics
    ///
    /// If the clock is not a manual one: the others are moved by the system or by tokio.
    pub fn advance(&self, by: Duration) {
        let Time::Manual(manual) = &self.time else {
            panic!("only a manual clock is advanced");
        };
        for sleeper in manual.advance(by) {
            sleeper.waker.wake();
        }
    }

    /// Returns the monotonic time, for deadlines and durations.
    #[must_use]
    pub fn now(&self) -> Instant {
        match &self.time {
            Time::Manual(manual) => manual.now(),
            Time::Real | Time::Stepped(..) => Instant::now(),
        }
    }

    /// Returns the wall time, for timestamps in objects.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        let (start, advanced) = match &self.time {
            Time::Real => return Timestamp::now(),
            Time::Stepped(start, from) => (*start, self.now().duration_since(*from)),
            Time::Manual(manual) => (manual.start, manual.lock().elapsed),
        };
        start.checked_add(advanced).unwrap_or(Timestamp::MAX)
    }

    /// Completes after `duration`.
    pub async fn sleep(&self, duration: Duration) {
        match &self.time {
            Time::Manual(manual) => self.timer(manual.now() + duration).await,
            Time::Real | Time::Stepped(..) => tokio::time::sleep(duration).await,
        }
    }

    /// Completes at `deadline`.
    pub async fn sleep_until(&self, deadline: Instant) {
        match &self.time {
            Time::Manual(_) => self.timer(deadline).await,
            Time::Real | Time::Stepped(..) => tokio::time::sleep_until(deadline).await,
        }
    }

    /// Returns a timer that completes at `deadline`, to be kept in a struct and polled.
    #[must_use]
    pub fn timer(&self, deadline: Instant) -> Timer {
        let wait = match &self.time {
            Time::Manual(manual) => Wait::Manual(Box::new(ManualWait {
                clock: Arc::clone(manual),
                deadline,
                number: None,
            })),
            Time::Real | Time::Stepped(..) => {
                Wait::Tokio(Box::pin(tokio::time::sleep_until(deadline)))
            }
        };
        Timer { wait }
    }

    /// Bounds a future: resolves to its output, or to [`Elapsed`] if it is not ready within `duration` of the call.
    ///
    /// A future that is ready when it is polled wins over an elapsed bound. The future is dropped with the returned
    /// one, not when the time is up; pass a `&mut` to a pinned one to continue it.
    pub fn timeout<F: IntoFuture>(
        &self,
        duration: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        match &self.time {
            Time::Manual(_) => {
                let timer = self.timer(self.now() + duration);
                Either::Left(async move {
                    tokio::select! {
                        biased;
                        output = future.into_future() => Ok(output),
                        () = timer => Err(Elapsed),
                    }
                })
            }
            Time::Real | Time::Stepped(..) => {
                let bounded = tokio::time::timeout(duration, future);
                Either::Right(async move { bounded.await.map_err(|_| Elapsed) })
            }
        }
    }
}

impl Manual {
    fn now(&self) -> Instant {
        self.origin + self.lock().elapsed
    }

    /// Advances the time, and returns the sleepers whose deadline has come.
    fn advance(&self, by: Duration) -> Vec<Sleeper> {
        let mut moved = self.lock();
        moved.elapsed = moved.elapsed.saturating_add(by);
        let now = self.origin + moved.elapsed;
        let due = |sleeper: &mut Sleeper| sleeper.deadline <= now;
        moved.sleepers.extract_if(.., due).collect()
    }

    fn lock(&self) -> MutexGuard<'_, ManualTime> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ManualTime {
    /// Registers the waker of a timer: of one that waits already, by its number, or of a new one.
    fn wait(&mut self, number: &mut Option<u64>, deadline: Instant, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.next += 1;
            self.next
        });
        let known = self.sleepers.iter_mut().find(|it| it.number == number);
        match known {
            Some(sleeper) => sleeper.waker.clone_from(waker),
            None => self.sleepers.push(Sleeper {
                number,
                deadline,
                waker: waker.clone(),
            }),
        }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.wait {
            Wait::Tokio(sleep) => sleep.as_mut().poll(context),
            Wait::Manual(wait) => wait.poll(context),
        }
    }
}

impl ManualWait {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut moved = self.clock.lock();
        if self.clock.origin + moved.elapsed >= self.deadline {
            return Poll::Ready(());
        }
        moved.wait(&mut self.number, self.deadline, context.waker());
        Poll::Pending
    }
}

impl Drop for ManualWait {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let left = |sleeper: &mut Sleeper| sleeper.number == number;
            // Dropped after the lock is released: a waker may own another timer.
            let _left: Vec<Sleeper> = self.clock.lock().sleepers.extract_if(.., left).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use futures::FutureExt;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_manual_clock_stands_until_it_is_advanced() {
        let start = Timestamp::from_second(1_000).expect("in range");
        let clock = Clock::manual(start);
        let begun = clock.now();
        assert_eq!((clock.now(), clock.wall()), (begun, start));
        clock.clone().advance(MINUTE);
        assert_eq!(clock.now(), begun + MINUTE);
        assert_eq!(clock.wall().as_second(), 1_060);
    }

    #[test]
    fn a_manual_clock_wakes_those_whose_time_has_come() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let mut soon = clock.timer(clock.now() + MINUTE);
        let mut late = clock.timer(clock.now() + 2 * MINUTE);
        assert_eq!((&mut soon).now_or_never(), None);
        assert_eq!((&mut late).now_or_never(), None);
        clock.advance(MINUTE);
        assert_eq!(soon.now_or_never(), Some(()));
        assert_eq!((&mut late).now_or_never(), None);
        drop(late);
        let Time::Manual(manual) = &clock.time else {
            panic!("it is a manual one");
        };
        assert!(manual.lock().sleepers.is_empty(), "a timer is left behind");
    }

    #[test]
    fn a_manual_clock_wakes_other_threads() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let deadline = clock.now() + MINUTE;
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                futures::executor::block_on(clock.sleep_until(deadline));
                clock.now()
            });
            clock.advance(MINUTE);
            assert_eq!(sleeper.join().expect("it ends"), deadline);
        });
    }
}
