//! Moves a request off the worker on which it began before it does work whose cost its client chooses.
//!
//! ```text
//!   worker that serves others:  poll ... offload(work) -> Pending, noted
//!   thread for large work:      resume -> poll ... -> answer
//! ```
//!
//! Reading, patching, checking and converting what a client sends is synchronous, and no worker can do anything else
//! meanwhile. So a request asks to be offloaded before such work: by [`offload_if_large`] where the work grows with
//! bytes, by [`offload`] where bytes do not tell its cost. Whoever polls the [`OffloadableRequest`] then moves it
//! whole, and it stays where it was moved to. Small requests never move: up to [`LARGE_BYTES`] the work is shorter than
//! the move is worth.
//!
//! Outside of a request, such as in the server's own tasks, nothing is moved.
//!
//! Every crate that does such work depends on this one, so it has no threads: these and their limits are in
//! `ringwatch-filters`.

mod request;
mod work;

pub use self::request::{
    AbandonOnDrop, OffloadProgress, OffloadRequest, OffloadableRequest, is_abandoned, offload,
    offload_if_large,
};
pub use self::work::{LARGE_BYTES, Work, memory_for};
