//! The flags of the subcommands about saved outcomes: `compare` and `show`.

use std::path::PathBuf;

use clap::Args;

use super::{Comparison, SavedError, read};

/// Put two saved outcomes of one scenario side by side: medians, ranges, ratio, and which is better.
///
/// Less than 20 % apart, or ranges that overlap, is a tie. An outcome that failed scores zero, and
/// the exit code is 1.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompareFlags {
    /// A file that --json printed or --save wrote.
    left: PathBuf,
    /// The same of another server, setting or time.
    right: PathBuf,
}

/// Show a saved outcome again, as a table or as a page.
#[derive(Args, Clone, Debug)]
pub(crate) struct ShowFlags {
    /// A file that --json printed or --save wrote.
    pub(crate) outcome: PathBuf,
}

impl CompareFlags {
    /// Reads both and puts them side by side.
    ///
    /// # Errors
    /// [`SavedError`]: one cannot be read, or they are not of one scenario.
    pub(crate) fn compare(&self) -> Result<Comparison, SavedError> {
        Comparison::new(read(&self.left)?, read(&self.right)?)
    }
}
