//! An outcome as a table to read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::Column::{Left, Right};
use super::columns;
use super::number::{count, digits};
use super::parameter;
use crate::outcome::{Figure, Run, ScenarioReport, ScenarioVerdict};

/// Writes an outcome as lines of text: setting, figures, warnings, verdict.
pub(crate) fn table(outcome: &ScenarioReport) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, outcome);
    out
}

fn write(out: &mut String, outcome: &ScenarioReport) -> std::fmt::Result {
    let runs = outcome.runs.len();
    let plural = if runs == 1 { "" } else { "s" };
    let (scenario, started) = (&outcome.scenario, &outcome.started);
    writeln!(out, "{scenario}: {runs} run{plural}, {started}")?;
    for line in setting(&outcome.setting) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for line in figures(outcome) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for warning in &outcome.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    let total = |of: fn(&Run) -> u64| count(outcome.runs.iter().map(of).sum());
    let (received, expected) = (total(|run| run.received), total(|run| run.expected));
    match &outcome.verdict {
        ScenarioVerdict::Passed => writeln!(
            out,
            "passed: {received} of {expected} events and answers came, once and in order"
        ),
        ScenarioVerdict::Failed { reasons } => {
            writeln!(
                out,
                "FAILED: {received} of {expected} events and answers came; the figures of a run that failed are zero"
            )?;
            reasons
                .iter()
                .try_for_each(|reason| writeln!(out, "  {reason}"))
        }
    }
}

/// Returns a line for each figure: its median and range, or the one value that there is.
fn figures(outcome: &ScenarioReport) -> Vec<String> {
    let better = |figure: &Figure| figure.better.word().unwrap_or_default().to_owned();
    if outcome.runs.len() == 1 {
        let row = |(name, figure): (&String, &Figure)| {
            let value = digits(figure.median);
            [name.clone(), value, figure.unit.clone(), better(figure)]
        };
        let head = ["", "", "", "better"].map(str::to_owned);
        let rows: Vec<_> = [head]
            .into_iter()
            .chain(outcome.summary.iter().map(row))
            .collect();
        return columns([Left, Right, Left, Left], &rows);
    }
    let row = |(name, figure): (&String, &Figure)| {
        let [median, least, most] = [figure.median, figure.min, figure.max].map(digits);
        let unit = figure.unit.clone();
        [name.clone(), median, least, most, unit, better(figure)]
    };
    let head = ["", "median", "least", "most", "", "better"].map(str::to_owned);
    let rows: Vec<_> = [head]
        .into_iter()
        .chain(outcome.summary.iter().map(row))
        .collect();
    columns([Left, Right, Right, Right, Left, Left], &rows)
}

/// Returns the lines about the setting: the server, the machine and the flags.
fn setting(setting: &BTreeMap<String, Value>) -> Vec<String> {
    const PLACES: [&str; 4] = ["server", "transport", "server_usage", "machine"];
    let places = PLACES.iter().filter_map(|place| {
        let value = parameter::value(place, setting.get(*place)?);
        Some([parameter::name(place), value])
    });
    let flags = setting
        .iter()
        .filter(|(name, _)| !PLACES.contains(&name.as_str()));
    let flags =
        flags.map(|(name, value)| [parameter::name(name), parameter::value(name, value)].join("="));
    let titles = ["flags"].into_iter().chain(std::iter::repeat(""));
    let flags = titles.zip(filled(flags));
    let flags = flags.map(|(title, line)| [title.to_owned(), line]);
    columns([Left, Left], &places.chain(flags).collect::<Vec<_>>())
}

/// Joins words to lines of a readable length.
fn filled(words: impl Iterator<Item = String>) -> Vec<String> {
    const WIDTH: usize = 66;
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < WIDTH => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_why_and_shows_zeros() {
        let mut run = Run {
            expected: 5,
            received: 4,
            ..Run::default()
        };
        run.lower("p99", "ms", 3.25);
        let outcome = ScenarioReport::new(
            "fanout",
            "now".to_owned(),
            BTreeMap::new(),
            vec![run],
            vec!["doubtful".to_owned()],
        );
        let table = table(&outcome);
        for words in [
            "FAILED: 4 of 5",
            "run 1: 4 received of 5",
            "warning: doubtful",
        ] {
            assert!(table.contains(words), "{table}");
        }
        assert!(!table.contains("3.25"), "{table}");
    }
}
