//! The synchronisation primitives of the kernel, in the shape that loom's have.
//!
//! [`crate::ring`] takes its atomics and locks from here and nowhere else, and so does the watch
//! cache. The `loom-tests` member includes the kernel's sources with loom's primitives under the same
//! names, `shuttle-tests` the whole cache with shuttle's, so that the code which is checked is the
//! code which ships.

#![allow(
    clippy::disallowed_types,
    reason = "the one place where the kernel's atomics come from"
)]

pub use std::sync::atomic::{AtomicU64, Ordering};
pub use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

pub use arc_swap::{ArcSwap, Guard};
