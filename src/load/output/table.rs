//! An outcome as a table to read.

use std::fmt::Write as _;

use super::number::digits;
use crate::load::outcome::{Better, Figure, Outcome, Verdict};

/// The outcome in lines.
pub(crate) fn table(outcome: &Outcome) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, outcome);
    out
}

fn write(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let runs = outcome.runs.len();
    let plural = if runs == 1 { "" } else { "s" };
    writeln!(
        out,
        "{}: {runs} run{plural}, {}",
        outcome.scenario, outcome.started
    )?;
    let setting: Vec<String> = outcome
        .setting
        .iter()
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name}={text}"),
            None => format!("{name}={value}"),
        })
        .collect();
    for line in filled(&setting) {
        writeln!(out, "  {line}")?;
    }
    let name_width = outcome.summary.keys().map(String::len).max();
    let name_width = name_width.unwrap_or_default().max("figure".len());
    writeln!(out)?;
    let head = ["median", "least", "most"].map(|head| format!("{head:>12}"));
    writeln!(out, "  {:name_width$} {}  unit", "figure", head.join(" "))?;
    for (name, figure) in &outcome.summary {
        let values = values(figure).map(|value| format!("{value:>12}"));
        let better = match figure.better {
            Better::Lower => "less is better",
            Better::Higher => "more is better",
        };
        let unit = &figure.unit;
        writeln!(
            out,
            "  {name:name_width$} {}  {unit} ({better})",
            values.join(" ")
        )?;
    }
    writeln!(out)?;
    for warning in &outcome.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    let [expected, received] = [
        outcome.runs.iter().map(|run| run.expected).sum::<u64>(),
        outcome.runs.iter().map(|run| run.received).sum::<u64>(),
    ];
    match &outcome.verdict {
        Verdict::Passed => writeln!(out, "passed: {received} of {expected}, once and in order"),
        Verdict::Failed { reasons } => {
            writeln!(
                out,
                "FAILED: {received} of {expected}; what is not whole scores zero"
            )?;
            reasons
                .iter()
                .try_for_each(|reason| writeln!(out, "  {reason}"))
        }
    }
}

/// Median and range, to the digits that are told.
pub(crate) fn values(figure: &Figure) -> [String; 3] {
    [figure.median, figure.min, figure.max].map(digits)
}

/// Words in lines of a readable length.
fn filled(words: &[String]) -> Vec<String> {
    const WIDTH: usize = 100;
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() + 2 <= WIDTH => {
                line.push_str("  ");
                line.push_str(word);
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::load::outcome::Run;

    #[test]
    fn a_failure_says_why_and_shows_zeros() {
        let mut run = Run {
            expected: 5,
            received: 4,
            ..Run::default()
        };
        run.lower("p99", "ms", 3.25);
        let outcome = Outcome::new(
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
