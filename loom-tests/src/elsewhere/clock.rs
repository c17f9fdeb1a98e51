//! The engine's `clock`, as far as the included files use it.

pub use std::time::Instant;
