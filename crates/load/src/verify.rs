//! `load verify`: checks by its answers alone that a server keeps what the watch protocol promises.
//!
//! A run writes down what clients are told: every answer to a write, everything that comes over a watch,
//! every list. From that the [`timeline`] of what must have happened is put together, and each of the
//! [`checks`] compares one promise with it. Both are pure, so what is found once can be found again from
//! the same history.
//!
//! # What is not known
//!
//! A write whose connection broke may have happened or not, and the answer to a deletion does not say
//! when it happened. What witnesses saw fills such holes; where no witness can have been, nothing is
//! demanded. So a violation is never a guess.

mod checks;
mod coverage;
mod expectation;
mod history;
mod linearizability;
mod run;
mod timeline;
mod violation;

#[cfg(test)]
mod tests;

pub(crate) use run::{DEFAULT_LENGTH, VerifyFlags, run};
pub use run::{HistoryVerdict, SimulatedClients};
