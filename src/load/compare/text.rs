//! Two outcomes side by side as a table to read.

use std::fmt::Write as _;

use super::{Comparison, Row, Side, Standing};
use crate::load::outcome::{Better, Figure, Verdict};
use crate::load::output::number::digits;

/// How many reasons of a failure are told.
const REASONS_MAX: usize = 10;

/// The comparison in lines.
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
    let head = ["figure", &left.name, &right.name, "ratio", "better"].map(str::to_owned);
    let cells = rows.iter().map(|row| cells(row, left, right));
    let table: Vec<[String; 5]> = [head].into_iter().chain(cells).collect();
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max();
    let [name, a, b, ratio] = [0, 1, 2, 3].map(|column| width(column).unwrap_or_default());
    for row in &table {
        let [figure, left, right, of, better] = row;
        writeln!(
            out,
            "  {figure:name$}  {left:>a$}  {right:>b$}  {of:>ratio$}  {better}"
        )?;
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
    let Verdict::Failed { reasons } = &side.outcome.verdict else {
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

fn cells(row: &Row, left: &Side, right: &Side) -> [String; 5] {
    let better = match row.standing {
        Standing::Left => left.name.clone(),
        Standing::Right => right.name.clone(),
        Standing::Tie => "tie".to_owned(),
        Standing::Unknown => "-".to_owned(),
    };
    let direction = match row.better {
        Better::Lower => "less is better",
        Better::Higher => "more is better",
    };
    [
        format!("{} ({}, {direction})", row.name, row.unit),
        values(row.left.as_ref()),
        values(row.right.as_ref()),
        row.ratio_text(),
        better,
    ]
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
