//! The engine's `clock`, as far as the included files use it.

pub use std::time::Instant;

/// A clock that tells the real time.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    /// Returns the time.
    #[allow(clippy::disallowed_methods, reason = "what a turn takes")]
    pub fn now(&self) -> Instant {
        Instant::now()
    }
}
