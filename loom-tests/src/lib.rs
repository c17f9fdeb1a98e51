//! The sources of `src/ring`, compiled over loom's primitives and explored.
//!
//! The production crate knows nothing of loom: its `ring` folder is included here by path, and
//! `crate::sync` is loom's. A file that imported from above `ring` would not compile.
//!
//! # Two traps
//!
//! loom keeps one last access for each atomic. A thread that loads what only it stores hides the
//! interleavings with readers, so the writers of `ring` keep their own copy, the models keep the
//! writer on the model's own thread, and the readers are spawned. And a model that explores next
//! to nothing passes: so each asserts a minimum number of executions and the set of outcomes that it saw.
//! `mutations.toml` lists weakened versions of `ring`, each of which some model must refuse.

#[path = "../../src/ring/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "a public module of another crate, of which the models need not call everything"
)]
mod ring;
pub(crate) use ringwatch_explore::loom::sync;

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
