//! The media type of a body, read as Go's `mime.ParseMediaType` reads a `Content-Type`.

use std::borrow::Cow;
use std::collections::HashMap;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

/// Returns the media type of a request's body in lower case, without parameters; JSON if it is not said, and nothing if
/// the header is malformed.
pub(super) fn media_type(headers: &HeaderMap) -> Cow<'_, str> {
    let said = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let said = String::from_utf8_lossy(said.unwrap_or_default());
    let is_plain = said
        .bytes()
        .all(|it| it != b';' && !it.is_ascii_uppercase());
    match &*said {
        "" => "application/json".into(),
        _ if is_plain => said,
        _ => read(&said).unwrap_or_default().into(),
    }
}

fn read(header: &str) -> Option<String> {
    let (media_type, _) = header.split_once(';').unwrap_or((header, ""));
    let mut parameters = &header[media_type.len()..];
    let mut known = HashMap::new();
    while !parameters.trim_start().is_empty() {
        let Some((name, value, rest)) = parameter(parameters) else {
            // A semicolon at the end stands for nothing.
            return (parameters.trim() == ";").then(|| media_type.trim().to_lowercase());
        };
        if *known.entry(name).or_insert_with(|| value.clone()) != value {
            return None;
        }
        parameters = rest;
    }
    Some(media_type.trim().to_lowercase())
}

/// Splits a parameter, with the semicolon before it, from what follows it.
fn parameter(text: &str) -> Option<(String, String, &str)> {
    let (name, rest) = token(text.trim_start().strip_prefix(';')?.trim_start())?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => unquoted(quoted)?,
        None => token(rest).map(|(value, rest)| (value.to_owned(), rest))?,
    };
    Some((name.to_lowercase(), value, rest))
}

/// Splits a token (RFC 1521) from what follows it; `None` if there is none.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_token = |it: char| it.is_ascii_graphic() && !is_special(it);
    let end = text.find(|it| !is_token(it)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Returns true for characters that stand in quoted texts alone.
fn is_special(character: char) -> bool {
    "()<>@,;:\\\"/[]?=".contains(character)
}

/// Splits the content of a quoted text, whose first quote is gone, from what follows it; `None` if it has no end.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut content = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((content, &text[at + 1..])),
            '\\' => match characters.next_if(|(_, next)| is_special(*next)) {
                Some((_, escaped)) => content.push(escaped),
                None => content.push(character),
            },
            other => content.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_go_reads_them() {
        for (header, expected) in [
            ("", "application/json"),
            ("application/json", "application/json"),
            ("APPLICATION/JSON;x=1", "application/json"),
            ("application/yaml ; a=b; c=\"d;\\\"\"", "application/yaml"),
            ("application/json;", "application/json"),
            ("application/json; a=1; A=1", "application/json"),
            ("application/json; a=1; a=2", ""),
            ("application/json;charset=utf-8;x", ""),
            ("application/json; charset=\"utf-8", ""),
            ("application/json;;", ""),
            ("application/json; A={\u{e9}}", ""),
            ("text/x; a={b}; c=\"\u{e9}\\x\"", "text/x"),
            (
                "application/json, application/yaml",
                "application/json, application/yaml",
            ),
        ] {
            let value = HeaderValue::from_bytes(header.as_bytes()).expect("a header");
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, value)]);
            assert_eq!(media_type(&headers), expected, "{header:?}");
        }
        assert_eq!(media_type(&HeaderMap::new()), "application/json");
    }
}
