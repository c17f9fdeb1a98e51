//! How an outcome is shown, and what is shown until there is one.
//!
//! Whatever is shown of an outcome comes from [`Outcome`](super::outcome::Outcome) alone, so that all
//! ways to show it agree.

pub(crate) mod columns;
pub(crate) mod number;
pub(crate) mod parameter;
mod progress;
pub(crate) mod report;
pub(crate) mod show;
mod table;

pub(crate) use columns::{Column, columns};
pub(crate) use progress::Progress;
