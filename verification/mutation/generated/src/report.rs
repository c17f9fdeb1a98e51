//! The outcomes of mutants: the table by folder, the list of those missed, and the list of those argued.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::MutantsError;
use crate::list::Mutant;

/// The least share of the mutants that compile which tests must catch, in percent, of each folder.
const CAUGHT_PERCENT_MIN: usize = 95;

/// The outcome of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// It does not compile.
    Unviable,
    Caught {
        layer: String,
        test: String,
        /// True if the test did not end, false if it failed.
        timed_out: bool,
    },
    /// It was missed: `tests` is the number of tests that reach it, all of which passed.
    Missed { tests: usize },
}

/// A file of mutants that no test can catch.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Argued {
    #[serde(default)]
    argued: Vec<Argument>,
}

/// The reason why a mutant need not be caught.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Argument {
    /// The name that cargo-mutants gives it, without line and column.
    name: String,
    /// The line where it begins, to tell mutants of one name apart.
    line: String,
    reason: String,
}

impl Argued {
    /// Reads the file.
    pub(crate) fn read(file: &Path) -> Result<Self, MutantsError> {
        let text = fs::read_to_string(file)?;
        let argued: Self = toml::from_str(&text).map_err(MutantsError::Argued)?;
        match argued.argued.iter().find(|it| it.reason.is_empty()) {
            None => Ok(argued),
            Some(it) => Err(MutantsError::NoReason(it.name.clone())),
        }
    }

    fn covers(&self, mutant: &Mutant) -> bool {
        self.argued.iter().any(|it| it.is_of(mutant))
    }
}

impl Argument {
    fn is_of(&self, mutant: &Mutant) -> bool {
        self.name == mutant.lasting_name() && self.line == mutant.line
    }
}

/// A mutant with its outcome.
type Tried<'a> = (&'a Mutant, Outcome);

/// The figures of a folder.
#[derive(Default)]
struct Figures {
    mutants: usize,
    unviable: usize,
    caught: BTreeMap<String, usize>,
    timed_out: usize,
    argued: usize,
    missed: usize,
}

impl Figures {
    fn caught(&self) -> usize {
        self.caught.values().sum()
    }

    fn viable(&self) -> usize {
        self.mutants - self.unviable
    }

    fn add(&mut self, (mutant, outcome): &Tried<'_>, argued: &Argued) {
        self.mutants += 1;
        match outcome {
            Outcome::Unviable => self.unviable += 1,
            Outcome::Caught {
                layer, timed_out, ..
            } => {
                *self.caught.entry(layer.clone()).or_default() += 1;
                self.timed_out += usize::from(*timed_out);
            }
            Outcome::Missed { .. } if argued.covers(mutant) => self.argued += 1,
            Outcome::Missed { .. } => self.missed += 1,
        }
    }

    fn is_good(&self) -> bool {
        self.missed == 0 && self.caught() * 100 >= self.viable() * CAUGHT_PERCENT_MIN
    }

    fn row(&self, folder: &str, layers: &[String]) -> String {
        let caught = |layer| self.caught.get(layer).copied().unwrap_or(0).to_string();
        let by_layer: Vec<String> = layers.iter().map(caught).collect();
        // In tenths of a percent, rounded down.
        let score = (self.caught() * 1_000).checked_div(self.viable());
        let score = score.unwrap_or(1_000);
        format!(
            "| {folder} | {} | {} | {} | {} | {} | {} | {}.{} % |",
            self.mutants,
            self.unviable,
            by_layer.join(" | "),
            self.timed_out,
            self.argued,
            self.missed,
            score / 10,
            score % 10
        )
    }
}

/// Outcomes, as people read them.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) text: String,
    /// True if each mutant is caught or argued, and enough are caught in each folder.
    pub(crate) is_good: bool,
}

/// Tells the outcomes by folder. An argument for a mutant that is gone or caught is an error when all mutants were
/// tried.
pub(crate) fn report(
    tried: &[Tried<'_>],
    folders: &[String],
    layers: &[String],
    argued: &Argued,
    tried_all: bool,
) -> Report {
    let mut by_folder: BTreeMap<&str, Figures> = BTreeMap::new();
    let mut text = String::new();
    let mut all = Figures::default();
    for it in tried {
        let (mutant, outcome) = it;
        let is_in = |folder: &&String| mutant.file.starts_with(folder.as_str());
        let folder = folders.iter().filter(is_in).max_by_key(|it| it.len());
        let figures = by_folder
            .entry(folder.map_or("", String::as_str))
            .or_default();
        figures.add(it, argued);
        all.add(it, argued);
        if let Outcome::Missed { tests } = outcome
            && !argued.covers(mutant)
        {
            let (name, line) = (&mutant.name, &mutant.line);
            let _ = writeln!(text, "MISSED {name}\n    by {tests} tests: {line}");
        }
    }
    let mut is_good = all.is_good() && by_folder.values().all(Figures::is_good);
    for argument in &argued.argued {
        let is_needed = |(mutant, outcome): &Tried<'_>| {
            matches!(outcome, Outcome::Missed { .. }) && argument.is_of(mutant)
        };
        if tried_all && !tried.iter().any(is_needed) {
            let _ = writeln!(text, "argued, but gone or caught: {}", argument.name);
            is_good = false;
        }
    }
    let columns = layers.join(" | ");
    let line = "|---".repeat(layers.len() + 7);
    let _ = writeln!(
        text,
        "| folder | mutants | unviable | {columns} | of these by time-out | argued | missed | caught |\n{line}|"
    );
    for (folder, figures) in by_folder.iter().map(|(folder, it)| (*folder, it)) {
        let _ = writeln!(text, "{}", figures.row(folder, layers));
    }
    let _ = writeln!(text, "{}", all.row("all", layers));
    Report { text, is_good }
}
