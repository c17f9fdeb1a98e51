//! The turns of users at something.

use super::clock::Clock;
use super::requester::Requester;

#[path = "../../../crates/flowcontrol/src"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "a public module of another crate, of which the models need not call everything"
)]
mod flowcontrol {
    pub(super) mod turns;
}
use flowcontrol::turns as included;

/// The turns of all users.
#[derive(Clone, Debug)]
pub struct Turns(included::Turns);

/// A turn. Dropping it ends it.
#[derive(Debug)]
pub struct Turn {
    _inner: included::Turn,
}

impl Turns {
    /// Gives so many turns at a time.
    pub fn new(at_a_time: usize) -> Self {
        Self(included::Turns::new(at_a_time))
    }

    /// Waits for a turn.
    pub async fn take(&self, requester: &Requester) -> Turn {
        let inner = self.0.take(requester).await;
        Turn { _inner: inner }
    }

    /// Does work of a user in steps, each in a turn of its own.
    pub async fn do_in_steps<T>(&self, requester: &Requester, work: impl Future<Output = T>) -> T {
        self.0.do_in_steps(requester, &Clock, work).await
    }
}
