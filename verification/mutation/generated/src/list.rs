//! The list of mutants, which cargo-mutants makes.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use tokio::process::Command;

use crate::MutantsError;

/// A mutant as cargo-mutants describes it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Mutant {
    /// Relative to the root of the workspace.
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) genre: Genre,
    pub(crate) replacement: String,
    pub(crate) span: Span,
    function: Option<Function>,
    /// The line of the file where it begins.
    #[serde(skip)]
    pub(crate) line: String,
    /// True if it is tried. The others tell which files a test reaches.
    #[serde(skip)]
    pub(crate) is_chosen: bool,
}

/// The kinds of mutants, of which each is switched on in its own way.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// The text that a mutant replaces.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: Place,
    pub(crate) end: Place,
}

/// A line and a column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Clone, Debug, Deserialize)]
struct Function {
    return_type: String,
}

impl Mutant {
    /// Returns true if it replaces what a function returns, and that is some type that the function keeps to itself.
    pub(crate) fn is_opaque(&self) -> bool {
        let function = self.function.as_ref();
        function.is_some_and(|it| it.return_type.starts_with("-> impl "))
    }

    /// Returns the name without line and column, which stays the same while the file is edited elsewhere.
    pub(crate) fn lasting_name(&self) -> String {
        let Place { line, column } = self.span.start;
        self.name.replacen(&format!(":{line}:{column}:"), ":", 1)
    }
}

/// Asks cargo-mutants for the mutants of folders, of which those are tried whose names contain one of the filters, if
/// there are any.
pub(crate) async fn read(
    root: &Path,
    folders: &[String],
    filters: &[String],
) -> Result<Vec<Mutant>, MutantsError> {
    let mut command = Command::new("cargo-mutants");
    command.args(["mutants", "--list", "--json"]);
    for folder in folders {
        command.args(["--file", &format!("{folder}/**")]);
    }
    let output = command.current_dir(root).output().await;
    let output = output.map_err(MutantsError::NoLister)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(MutantsError::List(said));
    }
    let parsed = serde_json::from_slice(&output.stdout);
    let mut mutants: Vec<Mutant> = parsed.map_err(|it| MutantsError::List(it.to_string()))?;
    for mutant in &mut mutants {
        let is_named = |filter: &String| mutant.name.contains(filter);
        mutant.is_chosen = filters.is_empty() || filters.iter().any(is_named);
    }
    if !mutants.iter().any(|it| it.is_chosen) {
        return Err(MutantsError::NoMutants);
    }
    for mutant in &mut mutants {
        let text = fs::read_to_string(root.join(&mutant.file))?;
        let line = text.lines().nth(mutant.span.start.line - 1);
        line.unwrap_or_default().trim().clone_into(&mut mutant.line);
    }
    Ok(mutants)
}
