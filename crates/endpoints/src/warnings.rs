//! Warning headers of responses.

use http::header::WARNING;
use http::{HeaderMap, HeaderValue};

/// Maximum number of characters of all warnings of a response together.
const WARNINGS_CHARS_MAX: usize = 4096;

/// The number of characters to which each warning is cut if all together exceed the maximum.
const WARNING_CHARS_MAX: usize = 256;

/// Adds the warnings to an answer, but for those with control characters, which no header may have. Follows
/// `recorder.AddWarning` and `NewWarningHeader`.
pub(super) fn warning_headers(warnings: &[String], headers: &mut HeaderMap) {
    let may_be_sent = |text: &&String| !text.contains(char::is_control);
    let warnings: Vec<_> = warnings.iter().filter(may_be_sent).collect();
    let total: usize = warnings.iter().map(|text| text.chars().count()).sum();
    let each = if total > WARNINGS_CHARS_MAX {
        WARNING_CHARS_MAX
    } else {
        WARNINGS_CHARS_MAX
    };
    let mut left = WARNINGS_CHARS_MAX;
    for text in warnings {
        let text: String = text.chars().take(each).collect();
        let Some(rest) = left.checked_sub(text.chars().count()) else {
            break;
        };
        left = rest;
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{}\"", quote(&text)).as_bytes())
        {
            headers.append(WARNING, value);
        }
    }
}

/// Escapes a text, so that it may stand between quotes in a header.
fn quote(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let escape = matches!(letter, '"' | '\\').then_some('\\');
            escape.into_iter().chain(std::iter::once(letter))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_escaped_and_length_is_bounded() {
        let mut headers = HeaderMap::new();
        let texts = ["two\nlines", "unknown field \"bogus\""].map(str::to_owned);
        warning_headers(&texts, &mut headers);
        assert_eq!(headers[WARNING], "299 - \"unknown field \\\"bogus\\\"\"");
        assert_eq!(headers.get_all(WARNING).iter().count(), 1);
        let mut headers = HeaderMap::new();
        let long: Vec<String> = (0..40)
            .map(|n| format!("{n}{}", "x".repeat(1000)))
            .collect();
        warning_headers(&long, &mut headers);
        assert_eq!(headers.get_all(WARNING).iter().count(), 16);
    }
}
