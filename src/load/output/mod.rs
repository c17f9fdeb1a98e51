//! How an outcome is shown, and what is shown until there is one.
//!
//! Whatever is shown of an outcome comes from [`Outcome`](super::outcome::Outcome) alone, so that all
//! ways to show it agree.

pub(crate) mod number;
mod progress;
pub(crate) mod report;
pub(crate) mod show;
mod table;

pub(crate) use progress::Progress;
