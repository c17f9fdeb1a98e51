//! Outcomes in files, as `--json` prints them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::Side;
use super::error::SavedError;
use crate::outcome::{FORMAT, ScenarioReport};

/// No outcome is longer: a day of a hundred runs is a tenth of it.
const OUTCOME_BYTES_MAX: u64 = 1 << 28;

/// The part that every format has.
#[derive(Deserialize)]
struct FormatHead {
    format: Option<Value>,
}

/// Reads an outcome. It is called as its file is.
///
/// # Errors
/// [`SavedError`]: it cannot be read, is something else, or has another format.
pub(crate) fn read(path: &Path) -> Result<Side, SavedError> {
    let bytes = bytes(path)?;
    let not_an_outcome = |error| SavedError::NotAnOutcome {
        path: path.to_owned(),
        error,
    };
    let head: FormatHead = serde_json::from_slice(&bytes).map_err(not_an_outcome)?;
    match head.format {
        Some(found) if found != FORMAT => {
            let (path, found) = (path.to_owned(), found.to_string());
            return Err(SavedError::Format { path, found });
        }
        // What has none fails below, with a better reason.
        _ => {}
    }
    let outcome: ScenarioReport = serde_json::from_slice(&bytes).map_err(not_an_outcome)?;
    let name = path.display().to_string();
    Ok(Side { name, outcome })
}

fn bytes(path: &Path) -> Result<Vec<u8>, SavedError> {
    let cannot_read = |error| SavedError::Read {
        path: path.to_owned(),
        error,
    };
    let file = File::open(path).map_err(cannot_read)?;
    let mut bytes = Vec::new();
    file.take(OUTCOME_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot_read)?;
    if bytes.len() as u64 > OUTCOME_BYTES_MAX {
        let (path, max) = (path.to_owned(), OUTCOME_BYTES_MAX);
        return Err(SavedError::TooLong { path, max });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    fn error_of(text: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json");
        fs::write(&path, text).expect("a file");
        let error = read(&path).expect_err("no outcome").to_string();
        error.replace(&folder.path().display().to_string(), "")
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json");
        let outcome = ScenarioReport::new(
            "fanout",
            String::new(),
            BTreeMap::new(),
            Vec::new(),
            Vec::new(),
        );
        fs::write(&path, serde_json::to_string(&outcome).expect("JSON")).expect("a file");
        let side = read(&path).expect("an outcome");
        assert_eq!(side.outcome, outcome);
        assert_eq!(side.name, path.display().to_string());
    }

    #[test]
    fn another_format_is_named() {
        let error = error_of(r#"{"format": 2, "anything": "else"}"#);
        assert_eq!(
            error,
            "/a.json has format 2, and this version reads format 1 alone"
        );
    }

    #[test]
    fn what_is_no_outcome_says_so() {
        for text in ["", "[]", "{}", r#"{"format": 1}"#] {
            let error = error_of(text);
            let begin = "/a.json is not what ringwatch load --json prints: ";
            assert!(error.starts_with(begin), "{error}");
        }
    }
}
