//! Models of concurrent code under loom and shuttle that prove that they explored something.
//!
//! A model that reaches none of the interesting interleavings passes, and looks like one that
//! reached them all. So each says beforehand how much it explores and which outcomes it sees:
//!
//! - `loom::explore` (feature `loom`) tries every interleaving of a few steps, with the reorderings
//!   that the memory orders allow. It takes a minimum number of executions and the exact set of outcomes.
//! - `shuttle::explore` (feature `shuttle`) tries thousands of random schedules of a whole
//!   component, sequentially consistent. It takes the number of schedules and the outcomes of which
//!   each must be seen.
//!
//! `loom::sync` and `shuttle::sync` hold the primitives of each under the names of one module of
//! synchronisation primitives, so that the file which is checked is the file which ships: it takes
//! its primitives from `crate::sync`, and the crate of models includes it by path with another
//! `sync`. `docs/models.md` of the repository shows how, on the free list in `tests/free_list/`.
//!
//! The means to explore a model belong here, and nothing about the structures that are modelled: there is no dependency
//! on the engine.

#[cfg(feature = "loom")]
pub mod loom;
#[cfg(feature = "shuttle")]
pub mod shuttle;
