//! The state as plain text, for files, pipes and tests.

use ringwatch_observe::status::ServerState;

use crate::sections::{self, Section};

/// The spaces between two columns.
const GAP: &str = "  ";

/// Returns a state as text. The one before it, if there is one, makes rates.
pub(crate) fn text(address: &str, state: &ServerState, before: Option<&ServerState>) -> String {
    let mut lines = sections::head(address, state);
    lines.push(String::new());
    lines.extend(sections::stands_out(state));
    for section in sections::sections(state, before) {
        lines.push(String::new());
        lines.push(format!("{}:", section.title));
        lines.extend(table(&section));
    }
    // No control character of clients' texts reaches a terminal, and none of them makes a line of its own.
    for line in &mut lines {
        line.retain(|it| !it.is_control());
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the lines of a table, with aligned columns.
fn table(section: &Section) -> Vec<String> {
    let names: Vec<String> = section
        .columns
        .iter()
        .map(|it| it.trim_end().to_owned())
        .collect();
    let rows: Vec<&Vec<String>> = section.rows.iter().map(|it| &it.cells).collect();
    let all = || std::iter::once(&names).chain(rows.iter().copied());
    let widths: Vec<usize> = (0..names.len())
        .map(|column| {
            all()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or_default()
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).zip(section.columns);
        let cells = cells.map(|((cell, width), column)| match column.ends_with(' ') {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join(GAP);
        line.trim_end().to_owned()
    };
    all().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::{LeadsTo, TableRow};

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 3]| TableRow {
            leads_to: LeadsTo::Nothing,
            cells: cells.map(str::to_owned).to_vec(),
        };
        let section = Section {
            title: "t".to_owned(),
            columns: &["NAME", "COUNT ", "TEXT"],
            rows: vec![row(["a", "12345678", ""]), row(["longer", "1", "x"])],
        };
        let expected = [
            "NAME       COUNT  TEXT",
            "a       12345678",
            "longer         1  x",
        ];
        assert_eq!(table(&section), expected);
    }
}
