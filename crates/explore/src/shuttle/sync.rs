//! shuttle's primitives under the names of a crate's `sync` module, and those that shuttle has not: tokio's, `OnceLock`
//! and `ArcSwap`.
//!
//! Every use of every primitive is a step of the schedule, so another task may go first. Those that shuttle has not are
//! the real ones, each with a step before each use: none of them can be seen half-way by its other users, so what may
//! happen between two uses is all that there is to explore. (shuttle's own versions of tokio's, `shuttle-tokio`, are
//! written anew, and differ: in whom a `Notify` wakes, for example. They bring in a benchmark harness, too.)
//!
//! A primitive that is not here does not compile in a crate of models, instead of going on unseen.

#![allow(
    clippy::disallowed_types,
    reason = "the stand-ins are made of the real ones"
)]

mod arc_swap;
mod notify;
mod once_lock;
pub mod oneshot;
mod semaphore;
pub mod watch;

pub use ::arc_swap::Guard;
pub use ::shuttle::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use ::shuttle::sync::{Arc, Mutex, MutexGuard};

pub use self::arc_swap::ArcSwap;
pub use self::notify::{Notified, Notify};
pub use self::once_lock::OnceLock;
pub use self::semaphore::{OwnedSemaphorePermit, Semaphore};

/// Makes each use of a primitive that shuttle does not know a step of the schedule.
#[derive(Debug, Default)]
struct Step(AtomicU64);

impl Step {
    /// Lets another task go first: shuttle may go on elsewhere at every access of an atomic.
    fn take(&self) {
        self.0.load(Ordering::SeqCst);
    }

    /// Does the same in a destructor, but not while a panic unwinds: that schedule has failed.
    fn take_at_the_end(&self) {
        if !std::thread::panicking() {
            self.take();
        }
    }
}
