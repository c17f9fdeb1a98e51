//! Errors in outcomes read from files.

use std::io;
use std::path::PathBuf;

use crate::outcome::FORMAT;

/// The reason why outcomes cannot be read or compared.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// The file cannot be read. Name another.
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    /// The file is longer than any outcome. Name another.
    #[error("{} is longer than {max} bytes, so it is no outcome", path.display())]
    TooLong { path: PathBuf, max: u64 },
    /// The file is something else. Name what `ringwatch load --json` printed.
    #[error("{} is not what ringwatch load --json prints: {error}", path.display())]
    NotAnOutcome {
        path: PathBuf,
        error: serde_json::Error,
    },
    /// Another version wrote it. Measure again, or compare with that version.
    #[error("{} has format {found}, and this version reads format {FORMAT} alone", path.display())]
    Format { path: PathBuf, found: String },
    /// They measured different things. Name two outcomes of one scenario.
    #[error(
        "{left} is of {left_scenario} and {right} of {right_scenario}: only outcomes of one scenario can be compared"
    )]
    Scenarios {
        left: String,
        left_scenario: String,
        right: String,
        right_scenario: String,
    },
}
