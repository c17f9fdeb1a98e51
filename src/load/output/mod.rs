//! How an outcome is shown, and what is shown until there is one.
//!
//! Whatever is shown of an outcome comes from [`Outcome`](super::outcome::Outcome) alone, so that all
//! ways to show it agree.

mod progress;
mod table;

pub(crate) use progress::Progress;
pub(crate) use table::table;
