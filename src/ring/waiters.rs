//! A number that only rises, published by one thread and awaited by many.
//!
//! ```text
//!  Publisher (one, &mut)                 PublishedNumber (many, Clone)
//!  ---------------------                 -----------------------------
//!  what is published       <-- sees --   1. value >= target?  -> done, no lock
//!  value.store(n, Release) --- pairs --> 2. lock
//!  lock                                  3. value >= target?  -> done
//!  take wakers with target <= n          4. wakers[(target, ticket)] = waker
//!  unlock, wake them                     5. unlock, sleep
//! ```
//!
//! # No wake-up is lost
//!
//! The publisher stores before it locks, the waiter looks again after it locked. The lock orders
//! the two critical sections, so there are two cases:
//!
//! - the waiter's came first: the publisher finds the waker and wakes it;
//! - the publisher's came first: the waiter's third step follows the publisher's unlock, hence its
//!   store, and does not sleep.
//!
//! The end of the publisher is seen in the same way: `closed` is set under the lock, and the third step checks it as
//! well. A value that was reached before the end still completes its waiters.
//!
//! # Invariants
//!
//! - The value never falls. Only the publisher stores it, and it keeps its own copy as a plain
//!   field: a writer that loads what only it stores hides interleavings from loom.
//! - A thread that has read a value sees everything that was written before it was published.
//! - An entry of `wakers` belongs to a live [`Wait`] that has not been woken. Dropping the `Wait`
//!   takes it out, so a cancelled waiter leaves nothing behind.
//! - Wakers are called outside the lock. A waiter whose target is not reached costs the publisher nothing.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use crate::sync::{Arc, AtomicU64, Mutex, MutexGuard, Ordering};

/// Creates the two halves of a published number.
pub fn published(initial: u64) -> (Publisher, PublishedNumber) {
    let shared = Arc::new(PublishedState {
        value: AtomicU64::new(initial),
        waiting: Mutex::new(WakerMap {
            next_ticket: 0,
            wakers: BTreeMap::new(),
            closed: false,
        }),
    });
    let publisher = Publisher {
        shared: Arc::clone(&shared),
        value: initial,
    };
    (publisher, PublishedNumber { shared })
}

/// The half that raises the number. There is one for each number.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<PublishedState>,
    /// The value of `shared.value`; kept here so that the writer never reads its own atomic.
    value: u64,
}

/// The half that reads the number and waits for it.
#[derive(Clone, Debug)]
pub struct PublishedNumber {
    shared: Arc<PublishedState>,
}

/// A future that completes with the number once it has reached the target, or with an error when it never will.
#[derive(Debug)]
pub struct Wait {
    shared: Arc<PublishedState>,
    /// The number at which the wait completes.
    target: u64,
    /// The number that distinguishes this waiter from others with the same target; `None` until it first sleeps.
    ticket: Option<u64>,
}

#[derive(Debug)]
struct PublishedState {
    /// The number, stored by the publisher alone.
    value: AtomicU64,
    /// The tasks that sleep until the number has reached their targets.
    waiting: Mutex<WakerMap>,
}

#[derive(Debug)]
struct WakerMap {
    /// The ticket of the next waiter; never reused.
    next_ticket: u64,
    /// The wakers by target and ticket, so that those to wake come first.
    wakers: BTreeMap<(u64, u64), Waker>,
    /// True if the publisher has been dropped.
    closed: bool,
}

/// The error of a wait that can never complete: the publisher has been dropped, and the number stays below the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl Publisher {
    /// Raises the number and wakes the waiters whose target it has reached. A number that is not higher is ignored.
    pub fn publish(&mut self, value: u64) {
        if value <= self.value {
            return;
        }
        self.value = value;
        // Release: pairs with the Acquire loads in `PublishedNumber::current` and `Wait::poll`.
        self.shared.value.store(value, Ordering::Release);
        let due = self.shared.lock().take_due(value);
        for waker in due.into_values() {
            waker.wake();
        }
    }

    /// Returns the number as last published.
    pub fn current(&self) -> u64 {
        self.value
    }
}

impl PublishedNumber {
    /// Returns the number as last published.
    pub fn current(&self) -> u64 {
        // Acquire: pairs with the Release store in `Publisher::publish`.
        self.shared.value.load(Ordering::Acquire)
    }

    /// Waits until the number is at least `target`. Dropping the future ends the wait.
    pub fn wait(&self, target: u64) -> Wait {
        Wait {
            shared: Arc::clone(&self.shared),
            target,
            ticket: None,
        }
    }

    /// Returns how many waiters sleep.
    pub fn waiting(&self) -> usize {
        self.shared.lock().wakers.len()
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let mut waiting = self.shared.lock();
        waiting.closed = true;
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        for waker in wakers.into_values() {
            waker.wake();
        }
    }
}

impl Future for Wait {
    type Output = Result<u64, Closed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // Acquire: pairs with the Release store in `Publisher::publish`.
        let value = this.shared.value.load(Ordering::Acquire);
        if value >= this.target {
            return Poll::Ready(Ok(value));
        }
        let mut waiting = this.shared.lock();
        // Acquire: as above. The look under the lock is what loses no wake-up.
        let value = this.shared.value.load(Ordering::Acquire);
        if value >= this.target {
            return Poll::Ready(Ok(value));
        }
        if waiting.closed {
            return Poll::Ready(Err(Closed));
        }
        let ticket = *this.ticket.get_or_insert_with(|| waiting.draw_ticket());
        waiting
            .wakers
            .insert((this.target, ticket), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let waker = self.shared.lock().wakers.remove(&(self.target, ticket));
            drop(waker);
        }
    }
}

impl PublishedState {
    /// Locks the map. A panic under the lock cannot leave it half changed, so poison is ignored.
    fn lock(&self) -> MutexGuard<'_, WakerMap> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WakerMap {
    fn draw_ticket(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        ticket
    }

    /// Removes and returns the wakers of all waiters whose target is at most `value`.
    fn take_due(&mut self, value: u64) -> BTreeMap<(u64, u64), Waker> {
        let later = self.wakers.split_off(&(value.saturating_add(1), 0));
        std::mem::replace(&mut self.wakers, later)
    }
}
