//! A clock that stands still until a model moves it.
//!
//! Reading it is not a step of the schedule: the cache reads it under locks that are not shuttle's.

#![allow(
    clippy::disallowed_types,
    reason = "the models' clock is not part of what is explored"
)]

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

pub use std::time::Instant;

use jiff::Timestamp;

/// The production clock's shape.
#[derive(Clone, Debug)]
pub struct Clock {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    /// The instant at which the clock began.
    origin: Instant,
    /// The time by which the clock has moved since then.
    elapsed: Duration,
    /// The tasks that wait for a time, each as that time and its waker, in the order in which they
    /// came.
    sleepers: Vec<(Instant, Waker)>,
}

impl Clock {
    /// Creates a clock that stands at its beginning.
    #[allow(clippy::disallowed_methods, reason = "an origin is all that is read")]
    pub fn standing() -> Self {
        let inner = Inner {
            origin: Instant::now(),
            elapsed: Duration::ZERO,
            sleepers: Vec::new(),
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Moves the clock and wakes those whose time has come.
    pub fn advance(&self, by: Duration) {
        let due = {
            let mut inner = self.lock();
            inner.elapsed += by;
            let now = inner.origin + inner.elapsed;
            let all = std::mem::take(&mut inner.sleepers);
            let (due, later) = all.into_iter().partition::<Vec<_>, _>(|(at, _)| *at <= now);
            inner.sleepers = later;
            due
        };
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    pub fn now(&self) -> Instant {
        let inner = self.lock();
        inner.origin + inner.elapsed
    }

    pub fn wall(&self) -> Timestamp {
        let elapsed = self.lock().elapsed;
        Timestamp::UNIX_EPOCH
            .checked_add(elapsed)
            .unwrap_or(Timestamp::MAX)
    }

    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(self.now() + duration).await;
    }

    pub async fn sleep_until(&self, deadline: Instant) {
        poll_fn(|context| {
            let mut inner = self.lock();
            if inner.origin + inner.elapsed >= deadline {
                return Poll::Ready(());
            }
            // A task that looks again, or that has given up, leaves its wakers until they are due.
            inner.sleepers.push((deadline, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
