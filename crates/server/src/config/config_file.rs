//! The file of `--config`: flags written as the fields of a versioned YAML document.
//!
//! ```yaml
//! apiVersion: ringwatch.io/v1alpha1
//! kind: ServerConfiguration
//! securePort: 6443
//! etcdServers: [https://10.0.0.1:2379]
//! ```
//!
//! A field is a flag's name in camel case, and there is no second list of them: the fields, their types and the checks
//! of their values are those that clap knows of the flags. [`with_file`] puts the fields before the flags of a command
//! line, so that everything after it sees flags alone. A flag of the command line replaces the field, lists included.

mod document;
mod field;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use self::document::{Document, Entry};
use self::field::FlagField;

pub use self::document::ConfigKind;
pub use self::field::effective;

/// The API version of the file.
pub const API_VERSION: &str = "ringwatch.io/v1alpha1";
/// The name of the flag that names the file.
const CONFIG: &str = "config";
/// The largest file that is read, in bytes: some hundred times what all flags take.
const BYTES_MAX: u64 = 1 << 20;

/// The reason why a configuration cannot be used. Names the file, and the line and field if it is about one.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {error}; give --config a file that can be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// It is no configuration of the wanted kind.
    #[error("{}:{line}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: u64,
        /// The reason.
        why: String,
    },
    /// A field is unknown, or has a wrong value.
    #[error("{}:{line}: {field}: {why}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: u64,
        /// The path of the field, such as `etcdServers[1]`.
        field: String,
        /// The reason, and what to do.
        why: String,
    },
}

/// Returns a command line with the fields of the file that its `--config` names put before its own flags; the line
/// itself if it names none. `root` is the whole program's command, and the second word of the line its subcommand.
///
/// # Errors
/// The file cannot be read, or a field in it is unknown, of another type or has a value that the flag refuses.
pub fn with_file(root: &Command, line: Vec<OsString>) -> Result<Vec<OsString>, ConfigFileError> {
    let Some(subcommand) = line.get(1).and_then(|it| it.to_str()) else {
        return Ok(line);
    };
    let command = root.find_subcommand(subcommand);
    let Some((command, kind)) = command.zip(ConfigKind::of_subcommand(subcommand)) else {
        return Ok(line);
    };
    // Errors of the line are reported when it is parsed as a whole.
    let given = root.clone().ignore_errors(true);
    let Ok(given) = given.try_get_matches_from(&line) else {
        return Ok(line);
    };
    let Some(given) = given.subcommand_matches(subcommand) else {
        return Ok(line);
    };
    let Some(path) = given.get_one::<PathBuf>(CONFIG) else {
        return Ok(line);
    };
    let document = Document::read(path, kind)?;
    let words = words(&document, path, command, given)?;
    let (program, rest) = line.split_at(2);
    Ok([program, &words, rest].concat())
}

/// Returns the kind of a configuration.
///
/// # Errors
/// The file cannot be read, or is none.
pub fn kind_of(path: &Path) -> Result<ConfigKind, ConfigFileError> {
    Document::kind(path)
}

/// Returns the words of a command line for the fields whose flags the line itself has not. All fields are checked.
fn words(
    document: &Document,
    path: &Path,
    command: &Command,
    given: &ArgMatches,
) -> Result<Vec<OsString>, ConfigFileError> {
    let mut words = Vec::new();
    // Each field is parsed alone as well, since clap's errors do not say from which word they come.
    let mut alone = command.clone().no_binary_name(true);
    for entry in &document.entries {
        let wrong = |line, field: String, why: String| ConfigFileError::Field {
            path: path.to_owned(),
            line,
            field,
            why,
        };
        let Some(field) = FlagField::named(command, &entry.name) else {
            return Err(wrong(
                entry.line,
                entry.name.clone(),
                unknown(command, entry),
            ));
        };
        let own = field
            .words(&entry.value, entry.line)
            .map_err(|it| wrong(it.line, format!("{}{}", entry.name, it.place), it.why))?;
        for (line, word) in &own {
            refused(&mut alone, word)
                .map_or(Ok(()), |why| Err(wrong(*line, entry.name.clone(), why)))?;
        }
        if given.value_source(field.id()) != Some(ValueSource::CommandLine) {
            words.extend(own.into_iter().map(|(_, word)| OsString::from(word)));
        }
    }
    Ok(words)
}

/// Returns why a flag refuses its value, if it does.
fn refused(command: &mut Command, word: &str) -> Option<String> {
    let error = command.try_get_matches_from_mut([word]).err()?;
    match error.kind() {
        // Other flags are looked at with the whole line.
        ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict => None,
        _ => Some(match std::error::Error::source(&error) {
            Some(source) => source.to_string(),
            None => first_line(&error.to_string()),
        }),
    }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// Says that there is no such field, and which may be meant.
fn unknown(command: &Command, entry: &Entry) -> String {
    let meant =
        FlagField::all(command).find(|it| it.name().eq_ignore_ascii_case(&plain(&entry.name)));
    match meant {
        Some(field) => format!("there is no such field; write {}", field.name()),
        None => "there is no such field; fields are the names of flags in camel case".to_owned(),
    }
}

/// Returns a name without the dashes and underscores that flags have.
fn plain(name: &str) -> String {
    name.replace(['-', '_'], "")
}

#[cfg(test)]
mod tests;
