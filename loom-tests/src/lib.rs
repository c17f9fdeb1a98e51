//! The sources of `src/ring`, and of what is made by hand elsewhere, compiled over loom's primitives and explored.
//!
//! The production crates know nothing of loom: their files are included here by path, and
//! `crate::sync` is loom's. A file of `ring` that imported from above `ring` would not compile.
//!
//! The models of `ring` stand here. Those of the other files stand in `tests/`, so that these are compiled without
//! their own tests; for them this crate is also `ringwatch`, `tokio` and `tokio_util`, as far as they use those.
//!
//! # Two traps
//!
//! loom keeps one last access for each atomic. A thread that loads what only it stores hides the
//! interleavings with readers, so the writers of `ring` keep their own copy, the models keep the
//! writer on the model's own thread, and the readers are spawned. And a model that explores next
//! to nothing passes: so each asserts a minimum number of executions and the set of outcomes that it saw.
//! `mutations.toml` lists weakened versions of what is explored, each of which some model must refuse.

extern crate self as ringwatch;
extern crate self as tokio;
extern crate self as tokio_util;

#[path = "../../src"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "a public module of another crate, of which the models need not call everything"
)]
mod engine {
    pub(super) mod ring;
}
#[cfg(test)]
use engine::ring;
pub use ringwatch_explore::loom::sync;

#[cfg(not(test))]
#[path = "../../src/budget.rs"]
pub mod budget;
#[cfg(not(test))]
#[path = "../../crates/http/src/cancellation.rs"]
pub mod cancellation;
#[cfg(not(test))]
mod elsewhere;
#[cfg(not(test))]
pub use elsewhere::*;

#[cfg(test)]
const _: () = assert!(
    cfg!(debug_assertions),
    "the models check the assertions of `ring` as well"
);

#[cfg(test)]
mod channel;
#[cfg(test)]
mod log;
#[cfg(test)]
mod registrations;
#[cfg(test)]
mod waiters;
