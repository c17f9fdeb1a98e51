//! The engine's atomics and locks, in the shape that loom's and shuttle's have.
//!
//! Every atomic, every lock and every cell that threads of the engine share is of a type from here.
//! [`crate::ring`] imports nothing else; `loom-tests` includes it with loom's primitives under the
//! same names, and `shuttle-tests` includes `ring`, the watch cache, `meta` and `budget` with
//! shuttle's, so that the code which is checked is the code which ships. Clippy refuses the standard
//! library's and `arc_swap`'s types anywhere else in the engine. They are aliases rather than
//! re-exports here because clippy sees through a re-export and would refuse that too.
//!
//! Not from here:
//!
//! - `tokio::sync` in the watch cache, the stores and `budget`: `Notify`, `Semaphore`, `oneshot`,
//!   `mpsc`, and `watch`. shuttle cannot switch threads inside them. `shuttle-tests` brings a `watch`
//!   sender of which each use is one step of the schedule; the others are tokio's own, and what they
//!   do inside is not explored.
//! - [`OnceLock`] is the standard library's under shuttle, which has none; loom's models have their
//!   own.
//! - `Arc`, which is re-exported for `ring` alone: without weak references or unique access nothing
//!   in the engine depends on the order of its counts.
//! - Statics that are initialised once and only read (`LazyLock`).

#![allow(
    clippy::disallowed_types,
    reason = "the one place where the engine's atomics and locks come from"
)]

pub use std::sync::atomic::Ordering;
pub use std::sync::{Arc, MutexGuard};

pub use arc_swap::Guard;

/// A `bool` that threads share.
pub type AtomicBool = std::sync::atomic::AtomicBool;
/// A `u64` that threads share.
pub type AtomicU64 = std::sync::atomic::AtomicU64;
/// A `usize` that threads share.
pub type AtomicUsize = std::sync::atomic::AtomicUsize;
/// A lock around a value that threads share.
pub type Mutex<T> = std::sync::Mutex<T>;
/// A cell that is written once.
pub type OnceLock<T> = std::sync::OnceLock<T>;
/// An [`Arc`] that is read without a lock and replaced as a whole.
pub type ArcSwap<T> = arc_swap::ArcSwap<T>;
