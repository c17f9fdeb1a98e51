//! The primitives by which threads and tasks share something, in the shape that loom's and shuttle's have.
//!
//! Every atomic, every lock and every cell that threads of the engine share is of a type from here, and of tokio's
//! primitives those of the watch cache and the budget. [`crate::ring`] imports nothing else; `loom-tests` includes it,
//! and what is made by hand elsewhere, with loom's primitives under the same names, and `shuttle-tests` includes
//! `ring`, the watch cache, `meta` and `budget` with shuttle's, where each use of each of them is a step of the
//! schedule. So the code which is checked is the code which ships. Clippy refuses the standard library's and
//! `arc_swap`'s types anywhere else in the engine. They are aliases rather than re-exports here because clippy sees
//! through a re-export and would refuse that too.
//!
//! Not from here:
//!
//! - `tokio::sync` in the stores, which no model includes. A file that one includes cannot use what has no stand-in
//!   there: it would not compile.
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
pub use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot, watch};

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
