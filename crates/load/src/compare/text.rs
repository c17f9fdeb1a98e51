//! Two outcomes side by side as a table to read.

use std::fmt::Write as _;

use super::{BetterSide, ComparedFigure, Comparison, Side};
use crate::outcome::{Figure, ScenarioVerdict};
use crate::output::Column::{Left, Right};
use crate::output::columns;
use crate::output::number::digits;

/// The most reasons of a failure that are shown.
const REASONS_MAX: usize = 10;

/// Writes a comparison as lines of text: figures, settings that differ, warnings, verdicts.
pub(crate) fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, comparison);
    out
}

fn write(out: &mut String, comparison: &Comparison) -> std::fmt::Result {
    let Comparison {
        left,
        right,
        rows,
        differences,
    } = comparison;
    writeln!(
        out,
        "{}: {} and {}\n",
        left.outcome.scenario, left.name, right.name
    )?;
    let head = ["", &left.name, &right.name, "ratio", "better"].map(str::to_owned);
    let cells = rows.iter().map(|row| cells(row, left, right));
    let table: Vec<[String; 5]> = [head].into_iter().chain(cells).collect();
    for line in columns([Left, Right, Right, Right, Left], &table) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    for difference in differences {
        writeln!(out, "warning: the settings differ: {difference}")?;
    }
    for side in [left, right] {
        write_side(out, side)?;
    }
    Ok(())
}

fn write_side(out: &mut String, side: &Side) -> std::fmt::Result {
    let name = &side.name;
    for warning in &side.outcome.warnings {
        writeln!(out, "warning: {name}: {warning}")?;
    }
    let ScenarioVerdict::Failed { reasons } = &side.outcome.verdict else {
        return writeln!(out, "{name} passed");
    };
    writeln!(out, "{name} FAILED, so it scores zero")?;
    for reason in reasons.iter().take(REASONS_MAX) {
        writeln!(out, "  {reason}")?;
    }
    match reasons.len().saturating_sub(REASONS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

fn cells(row: &ComparedFigure, left: &Side, right: &Side) -> [String; 5] {
    let better = match row.standing {
        BetterSide::Left => left.name.clone(),
        BetterSide::Right => right.name.clone(),
        BetterSide::Tie => "tie".to_owned(),
        BetterSide::Unknown => "-".to_owned(),
    };
    [
        about(row),
        values(row.left.as_ref()),
        values(row.right.as_ref()),
        row.ratio_text(),
        better,
    ]
}

/// Returns a figure's name, its unit and which values are better.
fn about(row: &ComparedFigure) -> String {
    let better = row.better.word().map(|word| format!("{word} is better"));
    let unit = Some(row.unit.clone()).filter(|unit| !unit.is_empty());
    let notes: Vec<String> = [unit, better].into_iter().flatten().collect();
    match notes.is_empty() {
        true => row.name.clone(),
        false => format!("{} ({})", row.name, notes.join(", ")),
    }
}

fn values(figure: Option<&Figure>) -> String {
    match figure {
        Some(figure) => {
            let [median, min, max] = [figure.median, figure.min, figure.max].map(digits);
            format!("{median} ({min} .. {max})")
        }
        None => "not measured".to_owned(),
    }
}
