//! The lock-minimised structures under the watch cache, checked with loom.
//!
//! Each file is one protocol. The `//!` comment of each has its drawing, its invariants, and which atomic operation
//! pairs with which. `loom-tests` has a file of models of the same name, and a list of weakened versions that the
//! models must refuse. The files have no tests of their own, because they are also compiled with loom's primitives.
//! Nothing here knows objects or watches; nothing here imports more than [`crate::sync`].
//!
//! - `channel`: signals from the dispatcher to a watcher, bounded; when one overflows, its watcher reads the window.
//! - `log`: numbered values, of which the newest are kept.
//! - `registrations`: members that many threads add and remove, for one owner.
//! - `waiters`: a number that rises, and those who wait for it.

pub mod channel;
pub mod log;
pub mod registrations;
pub mod waiters;
