//! The watch cache under random schedules: whole servers of it, with writers, informers, broken
//! streams, lost history, full channels, new types and a drain.
//!
//! Each model says at every step what the cache must answer; `store` is the truth. A lost wake-up
//! is a schedule that never ends, which is a failure too. `mutations.toml` lists faults that these
//! models must find.

#![allow(
    clippy::disallowed_types,
    reason = "what a model counts is not part of what is explored"
)]

mod crowd;
mod ending;
mod informer;
mod lagging;
mod memory;
mod reading;
mod store;
mod types;
mod waiting;
mod watching;
mod world;
