//! The messages of Go's `encoding/json` about malformed or misplaced JSON, for the common cases.

use serde_json::Value;
use serde_json::error::Category;

use crate::accessor::type_name;

/// Returns the words for an error of serde_json at its place in the content.
#[must_use]
pub fn message(error: &serde_json::Error, content: &[u8]) -> String {
    if error.classify() == Category::Eof {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
    if text.starts_with("recursion limit exceeded") {
        return "exceeded max depth".to_owned();
    }
    let where_ = [
        ("expected value", "looking for beginning of value"),
        (
            "key must be a string",
            "looking for beginning of object key string",
        ),
        (
            "trailing comma",
            "looking for beginning of object key string",
        ),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
        ("expected `:`", "after object key"),
        ("trailing characters", "after top-level value"),
        ("control character", "in string literal"),
        ("invalid escape", "in string escape code"),
        ("invalid number", "in numeric literal"),
    ]
    .into_iter()
    .find(|(serde, _)| text.starts_with(serde))
    .map(|(_, go)| go);
    match (where_, letter(error, content)) {
        (Some(place), Some(letter)) => format!("invalid character {letter:?} {place}"),
        _ => text,
    }
}

/// Returns the words for a value of the wrong type in a field of a kind.
#[must_use]
pub fn wrong(value: &Value, kind: &str, field: &str, expected: &str) -> String {
    let found = type_name(value);
    format!("json: cannot unmarshal {found} into Go struct field {kind}.{field} of type {expected}")
}

/// Returns the words for a value of the wrong type that is in no field.
#[must_use]
pub fn not_of_type(value: &Value, go_type: &str) -> String {
    let found = type_name(value);
    format!("json: cannot unmarshal {found} into Go value of type {go_type}")
}

/// Returns the byte at which the error was noticed, as Go shows it: it takes each for a character.
fn letter(error: &serde_json::Error, content: &[u8]) -> Option<char> {
    let line = content
        .split(|byte| *byte == b'\n')
        .nth(error.line().checked_sub(1)?)?;
    let rest = line.get(error.column().saturating_sub(1)..)?;
    rest.first().copied().map(char::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes() {
        for (content, expected) in [
            ("{\"a\":1", "unexpected end of JSON input"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\":1 2}",
                "invalid character '2' after object key:value pair",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            (
                "<x/>",
                "invalid character '<' looking for beginning of value",
            ),
        ] {
            let error = serde_json::from_str::<Value>(content).expect_err(content);
            assert_eq!(message(&error, content.as_bytes()), expected);
        }
    }
}
