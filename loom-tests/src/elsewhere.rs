//! The structures made by hand outside `ring`, as far as the models in `tests/` call them, and the parts of other
//! crates that the included files use.

pub mod clock;
pub mod doorbell;
pub mod encodings;
pub mod io;
pub mod joined_io;
pub mod level;
pub mod ready;
pub mod requester;
pub mod seats;
pub mod task;
pub mod turns;

pub use level::{Level, Limits};
pub use requester::{Lane, Requester};
