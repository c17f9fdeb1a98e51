//! The tokens that the parser expects where there is another one.
//!
//! Behind an operand the parser names all operators beside what should stand there, and cel-go's that alone.

use std::borrow::Cow;

/// The tokens that may follow any operand.
const OPERATORS: [&str; 18] = [
    "'=='", "'!='", "'in'", "'<'", "'<='", "'>='", "'>'", "'&&'", "'||'", "'['", "'.'", "','",
    "'-'", "'?'", "'+'", "'*'", "'/'", "'%'",
];

/// Returns a message of the parser with what cel-go's expects.
pub(super) fn shortened(message: &str) -> Cow<'_, str> {
    let Some((found, expected)) = message.split_once(" expecting {") else {
        return Cow::Borrowed(message);
    };
    let tokens = expected.strip_suffix('}').unwrap_or(expected).split(", ");
    let tokens: Vec<&str> = tokens.collect();
    // A comma is a token, and stands between the others.
    let is_behind_operand = tokens.contains(&"'=='") && found.contains("mismatched input");
    let mut others = tokens.iter().filter(|it| !OPERATORS.contains(*it));
    match (is_behind_operand, others.next(), others.next()) {
        (true, Some(only), None) if !tokens.contains(&"','") => {
            Cow::Owned(format!("{found} expecting {only}"))
        }
        _ => Cow::Borrowed(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_left_out_behind_operands() {
        for (expected, shown) in [
            (
                "{<EOF>, '==', '!=', 'in', '<', '.', '-', '?', '+'}",
                "<EOF>",
            ),
            ("{'==', '[', ')', '.', '-'}", "')'"),
            ("{'==', '[', ':', '.', '-'}", "':'"),
            (
                "{'==', '[', ']', '.', ',', '-'}",
                "{'==', '[', ']', '.', ',', '-'}",
            ),
            ("{'[', '{', '(', IDENTIFIER}", "{'[', '{', '(', IDENTIFIER}"),
            ("')'", "')'"),
        ] {
            let begin = "Syntax error: mismatched input 'b' expecting ";
            let message = format!("{begin}{expected}");
            assert_eq!(shortened(&message), format!("{begin}{shown}"));
        }
    }
}
