//! Where outcomes go: to standard output and into the files that were named.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::report;
use super::table::table;
use crate::load::compare::{self, Comparison};
use crate::load::error::LoadError;
use crate::load::flags::RunFlags;
use crate::load::outcome::Outcome;

/// Shows an outcome as the flags say.
///
/// # Errors
/// [`LoadError::Write`]: a file, or standard output, cannot be written.
pub(crate) fn outcome(outcome: &Outcome, flags: &RunFlags) -> Result<(), LoadError> {
    show(outcome, flags, || table(outcome), || report::page(outcome))
}

/// Shows two outcomes side by side as the flags say.
///
/// # Errors
/// [`LoadError::Write`]: a file, or standard output, cannot be written.
pub(crate) fn comparison(comparison: &Comparison, flags: &RunFlags) -> Result<(), LoadError> {
    let (text, page) = (
        || compare::text(comparison),
        || report::comparison_page(comparison),
    );
    show(comparison, flags, text, page)
}

fn show(
    shown: &impl Serialize,
    flags: &RunFlags,
    text: impl FnOnce() -> String,
    page: impl FnOnce() -> String,
) -> Result<(), LoadError> {
    let json = serde_json::to_string_pretty(shown).map_err(|error| LoadError::System {
        what: "write JSON",
        error: error.into(),
    })?;
    let json = json + "\n";
    if let Some(path) = &flags.save {
        fs::write(path, &json).map_err(failed(path))?;
    }
    if let Some(path) = &flags.report {
        fs::write(path, page()).map_err(failed(path))?;
    }
    let text = if flags.json { json } else { text() };
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(failed(Path::new("standard output")))
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> LoadError {
    let path = path.to_owned();
    move |error| LoadError::Write { path, error }
}
