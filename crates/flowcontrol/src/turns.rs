//! Lets users take turns at what only a few can have at a time.
//!
//! A turn is asked for, given in the order of `order.rs`, and ends when it is dropped. One that is dropped while it is
//! waited for leaves its queue, and one that has just been given then goes to the next.

mod order;
mod steps;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ringwatch::sync::{Arc, Mutex, MutexGuard, oneshot};

use self::order::Order;
use crate::Requester;

/// The turns of all users at something. Clones are the same turns.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Mutex<Order<oneshot::Sender<()>>>>);

/// A turn that has been given, or is waited for.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    requester: Requester,
    number: u64,
    /// Tells that the turn is given; `None` once that was seen.
    given: Option<oneshot::Receiver<()>>,
    /// The time that the turn has taken so far.
    used: Duration,
}

impl Turns {
    /// Gives so many turns at a time.
    #[must_use]
    pub fn new(at_a_time: usize) -> Self {
        Self(Arc::new(Mutex::new(Order::new(at_a_time))))
    }

    /// Asks for a turn, which is given at once if one is free.
    #[must_use]
    pub fn ask(&self, requester: &Requester) -> Turn {
        let (wake, given) = oneshot::channel();
        let mut order = self.lock();
        let number = order.ask(requester, wake);
        pass_on(&mut order);
        Turn {
            turns: self.clone(),
            requester: requester.clone(),
            number,
            given: Some(given),
            used: Duration::ZERO,
        }
    }

    /// Returns how many turns are waited for.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lock().waiting()
    }

    fn lock(&self) -> MutexGuard<'_, Order<oneshot::Sender<()>>> {
        // No change leaves the order inconsistent if it panics.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Gives the turns that are free to those who wait.
fn pass_on(order: &mut Order<oneshot::Sender<()>>) {
    while let Some(wake) = order.next() {
        // Whoever has gone away meanwhile gives it back when that is dropped.
        let _ = wake.send(());
    }
}

impl Turn {
    /// Completes once the turn is given.
    pub fn poll_given(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(given) = &mut self.given {
            // The sender is kept until the turn is given.
            let _ = ready!(Pin::new(given).poll(context));
            self.given = None;
        }
        Poll::Ready(())
    }

    /// Counts time that the turn has taken, by which its user's next ones come later.
    pub fn uses(&mut self, time: Duration) {
        self.used += time;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut order = self.turns.lock();
        order.leave(&self.requester, self.number, self.used);
        pass_on(&mut order);
    }
}
