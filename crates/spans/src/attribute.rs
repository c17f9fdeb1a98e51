//! Names, descriptions and attributes of spans, whose texts are bounded: clients choose many of them, and the queue
//! holds them.

use std::borrow::Cow;

use opentelemetry::KeyValue;

/// Maximum number of bytes of a text; the rest is cut off.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// A fact about the step that a span stands for.
pub type Attribute = KeyValue;

/// Returns an attribute with a text, which is cut off if it is long.
#[must_use]
pub fn text(key: &'static str, value: &str) -> Attribute {
    KeyValue::new(key, bounded(value).to_owned())
}

/// Returns a name or a description, which is cut off if it is long.
pub(crate) fn cut(text: Cow<'static, str>) -> Cow<'static, str> {
    match text.len() {
        0..=TEXT_BYTES_MAX => text,
        _ => Cow::Owned(bounded(&text).to_owned()),
    }
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Returns an attribute with a number; one that does not fit is the largest.
#[must_use]
pub fn number(key: &'static str, value: u64) -> Attribute {
    KeyValue::new(key, i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = format!("a{}", "é".repeat(TEXT_BYTES_MAX));
        let value = text("key", &long).value.as_str().into_owned();
        assert_eq!(value.len(), TEXT_BYTES_MAX - 1);
        assert!(long.starts_with(&value));
        assert_eq!(text("key", "short").value.as_str(), "short");
        assert_eq!(cut(long.into()).len(), TEXT_BYTES_MAX - 1);
    }
}
