//! The watch cache's sources, compiled over shuttle's primitives.
//!
//! loom explores every interleaving of a protocol of `ring`; the whole cache is too large for that.
//! shuttle runs it under thousands of random schedules instead, each of which a seed reproduces.
//! The production crate knows nothing of shuttle: its files are included here by path, and
//! `crate::sync` is shuttle's.
//!
//! A schedule reproduces what happened only if nothing else decides by chance. So `crate::clock`
//! moves when a model says so, and for the included files this crate is also `tokio` and `rand`:
//! [`select!`] looks at its branches in their order, [`random_range`] is the middle, and the
//! schedule decides when a [`task`] has used up its budget.
//! The rest of tokio is the real one, each call of which is one step of a schedule.
//!
//! The models stand in `tests/`, so that the included files are compiled without their own tests;
//! as a test of its own this crate is empty.

#![cfg(not(test))]
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "the included files are modules of another crate, and the models use only some"
)]

extern crate self as rand;
extern crate self as tokio;

pub mod clock;
#[path = "../../../src"]
mod engine {
    pub mod budget;
    pub mod codec;
    pub mod meta;
    pub mod ring;
}
/// The store's interface and the cacher, without the stores.
#[path = "../../../src/storage"]
pub mod storage {
    pub mod cacher;
    mod changes;
    mod continue_token;
    mod delegate;
    mod error;
    mod interface;
    mod key;
    mod media_type;
    mod options;
    mod preconditions;
    mod predicate;
    mod versioner;
    mod watch_stream;

    pub use changes::{
        Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, RawObject,
    };
    pub use continue_token::{ContinueToken, ContinueTokenError};
    pub use delegate::Delegate;
    pub use error::{CORRUPT_KEYS_MAX, Rejection, StorageError, corrupt_object};
    pub use interface::{DeletionCheck, Interface, List, NextContent, NoCheck, Stats, TryUpdate};
    pub use key::{InvalidKey, has_path_prefix, prepare_key};
    pub use media_type::StorageMediaType;
    pub use options::{
        DeleteOptions, GetOptions, ListOptions, UpdateOptions, WatchLag, WatchObserver,
        WatchProgress,
    };
    pub use preconditions::Preconditions;
    pub use predicate::SelectionPredicate;
    pub use versioner::Versioner;
    pub(crate) use watch_stream::FollowableWatch;
    pub use watch_stream::{FollowOutcome, WatchStream};
}
pub mod task;

use engine::ring;
pub use engine::{budget, codec, meta};
pub use ringwatch_explore::shuttle::sync;

/// tokio's `select!`, always in the order of the branches.
#[macro_export]
macro_rules! select {
    (biased; $($branches:tt)*) => { $crate::in_order!(biased; $($branches)*) };
    ($($branches:tt)*) => { $crate::in_order!(biased; $($branches)*) };
}

#[doc(hidden)]
pub use real_tokio::select as in_order;

/// Returns the middle of a range, instead of something in it.
pub fn random_range(range: std::ops::Range<f64>) -> f64 {
    f64::midpoint(range.start, range.end)
}
