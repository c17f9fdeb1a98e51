//! Errors in the text of an expression, shown with their places as the parser of cel-go shows them.

use kube_cel::cel::common::ast::SourceInfo;
use kube_cel::cel::parser::Parser;

use super::part_error::PartError;
use super::spelling;

/// Maximum number of errors of one expression that are shown, as in kube-apiserver.
const ERRORS_MAX: usize = 100;

/// Bytes of a description above which the line of the expression is no longer shown with each error.
const SHOWN_BYTES_MAX: usize = 64 << 10;

/// Maximum number of bytes of a line that is shown, as in kube-apiserver.
const LINE_BYTES_MAX: usize = 16_384;

/// A place in the text of an expression, whose line and column are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourcePosition {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Describes errors about parts of an expression with their places.
pub(super) fn describe_parts(source: &str, wrong: &[PartError]) -> String {
    let spelled = spelling::spell(source).text;
    let places = places(&spelled);
    let wrong = wrong.iter().map(|error| {
        let offset = places.as_ref().and_then(|it| it.offset_for(error.id));
        let mut place = place(&spelled, offset.map_or(0, |(start, _)| start as usize));
        place.column = place.column.saturating_add_signed(error.shift);
        (place, error.why.as_str())
    });
    describe(source, wrong)
}

/// Describes errors with their places, in the order of these: the first 100, each distinct one once.
pub(super) fn describe<'w>(
    source: &str,
    wrong: impl ExactSizeIterator<Item = (SourcePosition, &'w str)>,
) -> String {
    let more = wrong.len().saturating_sub(ERRORS_MAX);
    let mut first: Vec<_> = wrong.take(ERRORS_MAX).collect();
    first.sort_by_key(|(place, _)| *place);
    first.dedup();
    let mut text = String::new();
    for (place, why) in first {
        let separator = if text.is_empty() { "" } else { "\n" };
        let is_shown = text.len() < SHOWN_BYTES_MAX;
        text = text + separator + &describe_one(source, place, why, is_shown);
    }
    if more > 0 {
        text += &format!("\n{more} more errors were truncated");
    }
    text
}

/// Returns the offsets of the parts of an expression. The parser returns them only together with errors, so an error is
/// provoked: a character that is not in the language is added behind the expression.
fn places(spelled: &str) -> Option<std::sync::Arc<SourceInfo>> {
    let parser = Parser::new().enable_optional_syntax(true);
    let errors = parser.parse(&format!("{spelled}\n#")).err()?;
    errors
        .errors
        .into_iter()
        .find_map(|error| error.source_info)
}

/// Returns the position of the character that begins with this byte. It is the same in the expression as it was
/// written.
fn place(spelled: &str, offset: usize) -> SourcePosition {
    let before = spelled.get(..offset).unwrap_or(spelled);
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default();
    SourcePosition {
        line,
        column: column.chars().count(),
    }
}

/// Describes one error, and shows the line of the expression with a mark below its column if `is_shown`.
fn describe_one(source: &str, position: SourcePosition, why: &str, is_shown: bool) -> String {
    // Nothing at all has no place.
    if source.is_empty() {
        return format!("ERROR: <input>:1:0: {why}");
    }
    let SourcePosition { line, column } = position;
    let message = format!("ERROR: <input>:{}:{}: {why}", line + 1, column + 1);
    if !is_shown {
        return message;
    }
    let text = source.lines().nth(line).unwrap_or_default();
    if text.len() > LINE_BYTES_MAX {
        return message;
    }
    let text = text.replace('\t', " ");
    let mut letters = text.chars();
    let dots: String = (0..column)
        .map(|_| if is_wide(letters.next()) { '．' } else { '.' })
        .collect();
    let mark = if is_wide(letters.next()) { '＾' } else { '^' };
    format!("{message}\n | {text}\n | {dots}{mark}")
}

/// Returns true for a character that a wide dot or mark stands below.
fn is_wide(letter: Option<char>) -> bool {
    letter.is_some_and(|it| !it.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_as_wide_as_what_is_above_them() {
        let position = |column| SourcePosition { line: 0, column };
        for (source, column, shown) in [
            ("'é\t日' + a", 7, "\n | 'é 日' + a\n | .．.．...^"),
            ("é", 0, "\n | é\n | ＾"),
            ("é", 1, "\n | é\n | ．^"),
            ("a +", 3, "\n | a +\n | ...^"),
        ] {
            let description = describe_one(source, position(column), "why", true);
            let message = format!("ERROR: <input>:1:{}: why", column + 1);
            assert_eq!(description, message + shown);
        }
    }

    #[test]
    fn long_lines_are_not_shown() {
        let position = SourcePosition { line: 0, column: 0 };
        for (length, is_shown) in [(LINE_BYTES_MAX, true), (LINE_BYTES_MAX + 1, false)] {
            let description = describe_one(&"y".repeat(length), position, "why", true);
            assert_eq!(description.contains('\n'), is_shown);
        }
    }
}
