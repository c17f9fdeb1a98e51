//! The doorbell of a connection's rarer future.

use std::task::{Context, Waker};

#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "the joined writes use the rest, which include it once more"
)]
#[path = "../../../crates/http/src/doorbell.rs"]
mod included;

/// The task's side of a doorbell.
#[derive(Debug, Default)]
pub struct Doorbell(included::Doorbell);

impl Doorbell {
    /// Returns the waker with which the rarer future is to be polled, if it is.
    pub fn answer(&self, context: &Context<'_>) -> Option<Waker> {
        self.0.answer(context)
    }
}
