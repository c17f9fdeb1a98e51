//! The types of priority levels, without how they are read.

use std::sync::Arc;

/// A priority level, as far as it limits requests.
#[derive(Clone, Debug)]
pub struct Level {
    /// Its name.
    pub name: Arc<str>,
    /// Its limits; `None` if it is exempt.
    pub limits: Option<Limits>,
}

/// The limits of a level.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Its share of all seats.
    pub shares: u64,
    /// The part of that share that others may borrow, in percent.
    pub lendable_percent: u64,
    /// The most requests of one flow that may wait.
    pub queue_length: usize,
}
