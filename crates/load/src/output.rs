//! Text on a terminal: the table of an outcome, and the progress until there is one; numbers, parameters and columns,
//! which pages and comparisons share.
//!
//! Whatever is shown of an outcome comes from [`Outcome`](crate::outcome::Outcome) alone, so that all ways to show it
//! agree.

pub(crate) mod columns;
pub(crate) mod number;
pub(crate) mod parameter;
mod progress;
pub(crate) mod table;

pub(crate) use columns::{Column, columns};
pub(crate) use progress::ProgressLine;
