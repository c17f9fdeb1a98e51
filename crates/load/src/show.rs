//! Prints outcomes and comparisons, and writes them to the files that the flags name.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::compare::{self, Comparison};
use crate::error::LoadError;
use crate::flags::RunFlags;
use crate::outcome::ScenarioReport;
use crate::output::table::table;
use crate::report;

/// Makes sure that the files that were named can be written, before there is anything to write. What
/// is in them stays until then.
///
/// # Errors
/// [`LoadError::Write`]: one cannot.
pub(crate) fn check(flags: &RunFlags) -> Result<(), LoadError> {
    for path in [&flags.save, &flags.report].into_iter().flatten() {
        let is_new = path.symlink_metadata().is_err();
        let opened = File::options().append(true).create(true).open(path);
        opened.map_err(failed(path))?;
        if is_new {
            // A run that fails leaves no empty file behind.
            fs::remove_file(path).map_err(failed(path))?;
        }
    }
    Ok(())
}

/// Shows an outcome as the flags say.
///
/// # Errors
/// [`LoadError::Write`]: a file, or standard output, cannot be written.
pub(crate) fn outcome(outcome: &ScenarioReport, flags: &RunFlags) -> Result<(), LoadError> {
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
    let text = if flags.json { &json } else { &text() };
    let printed = std::io::stdout().write_all(text.as_bytes());
    // One that cannot be written keeps the outcome from no other.
    let saved = flags.save.as_ref().map(|path| write(path, &json));
    let reported = flags.report.as_ref().map(|path| write(path, &page()));
    printed.map_err(failed(Path::new("standard output")))?;
    saved.into_iter().chain(reported).collect()
}

fn write(path: &Path, text: &str) -> Result<(), LoadError> {
    fs::write(path, text).map_err(failed(path))
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> LoadError {
    let path = path.to_owned();
    move |error| LoadError::Write { path, error }
}
