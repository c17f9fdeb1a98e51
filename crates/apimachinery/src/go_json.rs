//! The messages of Go's `encoding/json` about malformed or misplaced JSON, for the common cases.

use serde_json::Value;
use serde_json::error::Category;

use crate::accessor::type_name;

/// The type into which Go first reads an object.
pub const GO_TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                                Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// Returns the words for an error of serde_json at its place in the content.
#[must_use]
pub fn message(error: &serde_json::Error, content: &[u8]) -> String {
    if error.classify() == Category::Eof {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
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
        ("recursion limit exceeded", "exceeded max depth"),
    ]
    .into_iter()
    .find(|(serde, _)| text.starts_with(serde))
    .map(|(_, go)| go);
    let before = before(error, content);
    let letter = before.and_then(|it| content.get(it.len()).copied().map(char::from));
    match (where_, letter) {
        (Some(place), Some(letter)) => format!("invalid character {letter:?} {place}"),
        (None, Some(letter)) if text.starts_with("expected ident") => {
            let (literal, expected) = begun_literal(before.unwrap_or_default());
            format!("invalid character {letter:?} in literal {literal} (expecting {expected:?})")
        }
        _ => text,
    }
}

/// Returns the literal that a text ends within, and its next character.
fn begun_literal(text: &[u8]) -> (&'static str, char) {
    let literals = ["true", "false", "null"];
    let begun = literals.iter().find_map(|literal| {
        let mut lengths = (1..literal.len()).rev();
        let length = lengths.find(|length| text.ends_with(&literal.as_bytes()[..*length]))?;
        Some((*literal, literal[length..].chars().next()?))
    });
    begun.unwrap_or(("null", 'u'))
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

/// Returns what is before the byte at which the error was noticed. Go takes each byte for a character.
fn before<'c>(error: &serde_json::Error, content: &'c [u8]) -> Option<&'c [u8]> {
    let lines = content.split(|byte| *byte == b'\n');
    let lines_before = lines.take(error.line().checked_sub(1)?);
    let bytes_before: usize = lines_before.map(|line| line.len() + 1).sum();
    // The column of a line break is 0 of the line after it.
    content.get(..(bytes_before + error.column()).checked_sub(1)?)
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
            (
                "not json",
                "invalid character 'o' in literal null (expecting 'u')",
            ),
            (
                "{\n\"a\": [fals3]}",
                "invalid character '3' in literal false (expecting 'e')",
            ),
        ] {
            let error = serde_json::from_str::<Value>(content).expect_err(content);
            assert_eq!(message(&error, content.as_bytes()), expected);
        }
        for (begin, bracket) in [("[", '['), ("{\"a\":", '{')] {
            let content = begin.repeat(200);
            let error = serde_json::from_str::<Value>(&content).expect_err("deep");
            assert_eq!(
                message(&error, content.as_bytes()),
                format!("invalid character '{bracket}' exceeded max depth")
            );
        }
    }
}
