//! What is made by hand outside `ring`, with what the models in `tests/` call of it, and what the included files use of
//! other crates.

pub mod clock;
pub mod doorbell;
pub mod encodings;
pub mod io;
pub mod joined_io;
pub mod level;
pub mod seats;
pub mod task;

pub use level::{Level, Limits};
