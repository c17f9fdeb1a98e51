//! Columns: rows of cells, aligned below each other.

/// The side of a column on which its cells are aligned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Column {
    Left,
    Right,
}

/// Returns a line for each row, with two spaces between columns that are as wide as their widest cell.
pub(crate) fn columns<const N: usize>(columns: [Column; N], rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; N] = std::array::from_fn(|column| width(column).unwrap_or_default());
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for ((cell, width), column) in row.iter().zip(widths).zip(columns) {
            line += "  ";
            line += &match column {
                Column::Left => format!("{cell:width$}"),
                Column::Right => format!("{cell:>width$}"),
            };
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [["a", "1", ""], ["long", "23", "x"]].map(|row| row.map(str::to_owned));
        let lines = columns([Column::Left, Column::Right, Column::Left], &rows);
        assert_eq!(lines, ["  a      1", "  long  23  x"]);
    }
}
