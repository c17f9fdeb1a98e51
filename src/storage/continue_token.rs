//! Continue tokens in Kubernetes' format, so that a list may go on at another server.
//!
//! A token is base64 (URL alphabet, no padding) of `{"v":"meta.k8s.io/v1","rv":N,"start":"KEY"}`. The hard part is
//! trust: tokens come from clients, so the start key must stay within the list, and the texts of errors are those of
//! Go's base64 and JSON decoders.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde::Serialize;
use serde_json::Value;

/// The position at which a list continues.
///
/// ```
/// use ringwatch::storage::{ContinueToken, ContinueTokenError};
///
/// let token = ContinueToken {
///     start: "/registry/pods/default/b".to_owned(),
///     revision: Some(7),
/// };
/// let text = token.encode("/registry/pods/")?;
/// let decoded = ContinueToken::decode(&text, "/registry/pods/")?;
/// assert_eq!((decoded.start, decoded.revision), (token.start, Some(7)));
/// # Ok::<(), ContinueTokenError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// The full key at which the next page starts.
    pub start: String,
    /// The revision of the list; `None` continues with the newest state.
    pub revision: Option<u64>,
}

/// An error about a continue token that cannot be used. Begin the list again without one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ContinueTokenError(pub String);

#[derive(Serialize)]
struct Wire<'a> {
    v: &'static str,
    rv: i64,
    start: &'a str,
}

impl ContinueToken {
    /// Creates the token of a list at a revision that goes on after a full key.
    #[must_use]
    pub fn after(key: &str, revision: u64) -> Self {
        Self {
            // The first key after it.
            start: format!("{key}\0"),
            revision: Some(revision),
        }
    }

    /// Decodes a token of a list under the full key `prefix`.
    ///
    /// # Errors
    /// [`ContinueTokenError`] when it is not a token or its start key lies outside of the list.
    pub fn decode(token: &str, prefix: &str) -> Result<Self, ContinueTokenError> {
        let value =
            parse(token).map_err(|error| invalid(format!("continue key is not valid: {error}")))?;
        let member = |name: &str| value.get(name).filter(|member| !member.is_null());
        let version = member("v").and_then(Value::as_str).unwrap_or_default();
        if version != VERSION {
            return Err(invalid(format!(
                "continue key is not valid: server does not recognize this encoded version {version}"
            )));
        }
        let revision = member("rv").and_then(Value::as_i64).unwrap_or_default();
        if revision == 0 {
            return Err(invalid(format!(
                "continue key is not valid: incorrect encoded start resourceVersion (version {VERSION})"
            )));
        }
        let start = member("start").and_then(Value::as_str).unwrap_or_default();
        if start.is_empty() {
            return Err(invalid(format!(
                "continue key is not valid: encoded start key empty (version {VERSION})"
            )));
        }
        let inner = start.strip_prefix('/').unwrap_or(start);
        if !is_clean(inner) {
            return Err(invalid(format!("continue key is not valid: {start}")));
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        Ok(Self {
            start: format!("{prefix}/{inner}"),
            revision: u64::try_from(revision).ok(),
        })
    }

    /// Encodes the token for a list under the full key `prefix`.
    ///
    /// # Errors
    /// [`ContinueTokenError`] when the start key does not lie under the prefix.
    pub fn encode(&self, prefix: &str) -> Result<String, ContinueTokenError> {
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let start = self
            .start
            .strip_prefix(prefix)
            .filter(|start| start.starts_with('/'))
            .ok_or_else(|| {
                invalid("unable to encode next field: the key and key prefix do not match".into())
            })?;
        let revision = self.revision.map_or(Ok(-1), i64::try_from);
        let wire = Wire {
            v: VERSION,
            rv: revision.map_err(|error| invalid(error.to_string()))?,
            start,
        };
        let json = serde_json::to_vec(&wire).map_err(|error| invalid(error.to_string()))?;
        Ok(URL_SAFE_NO_PAD.encode(json))
    }
}

const VERSION: &str = "meta.k8s.io/v1";

/// Go's raw decoder ignores the excess bits of the last character.
const DECODER: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

fn invalid(message: String) -> ContinueTokenError {
    ContinueTokenError(message)
}

/// Returns true if a relative path is its own shortest form.
fn is_clean(path: &str) -> bool {
    path.is_empty()
        || path
            .split('/')
            .all(|segment| !matches!(segment, "" | "." | ".."))
}

/// Returns the JSON of a token if its members have the right types; otherwise the error of Go's decoders.
fn parse(token: &str) -> Result<Value, String> {
    let json = DECODER.decode(token).map_err(|_| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let wrong = token.bytes().position(|byte| !known(byte));
        let at = wrong.unwrap_or_else(|| token.len().saturating_sub(1));
        format!("illegal base64 data at input byte {at}")
    })?;
    let value = serde_json::from_slice(&json).map_err(|error| syntax_error(&json, &error))?;
    let Value::Object(members) = &value else {
        return match &value {
            Value::Null => Ok(value),
            other => Err(format!(
                "json: cannot unmarshal {} into Go value of type storage.continueToken",
                type_name(other)
            )),
        };
    };
    for (name, wanted) in [("v", "string"), ("rv", "int64"), ("start", "string")] {
        let Some(member) = members.get(name).filter(|member| !member.is_null()) else {
            continue;
        };
        let fits = if wanted == "int64" {
            member.is_i64()
        } else {
            member.is_string()
        };
        if !fits {
            return Err(format!(
                "json: cannot unmarshal {} into Go struct field continueToken.{name} of type {wanted}",
                type_name(member)
            ));
        }
    }
    Ok(value)
}

fn type_name(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

/// Returns the error of Go's decoder about malformed JSON: the first wrong character and the expected one.
fn syntax_error(json: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let line = json
        .split(|byte| *byte == b'\n')
        .nth(error.line().saturating_sub(1));
    let wrong = line.and_then(|line| line.get(error.column().saturating_sub(1)));
    let Some(wrong) = wrong else {
        return error.to_string();
    };
    let text = error.to_string();
    let place = PLACES.iter().find(|(start, _)| text.starts_with(start));
    let place = place.map_or("looking for beginning of value", |(_, place)| place);
    // Go takes the byte for a character of that number.
    let shown = match char::from(*wrong) {
        '\'' => "\\'".to_owned(),
        '"' => "\"".to_owned(),
        char if char.is_control() => format!("\\x{:02x}", u32::from(char)),
        char => char.to_string(),
    };
    format!("invalid character '{shown}' {place}")
}

/// The texts of positions in serde_json's errors.
const PLACES: &[(&str, &str)] = &[
    ("expected `:`", "after object key"),
    ("expected `,` or `}`", "after object key:value pair"),
    ("expected `,` or `]`", "after array element"),
    (
        "key must be a string",
        "looking for beginning of object key string",
    ),
    (
        "trailing comma",
        "looking for beginning of object key string",
    ),
    ("trailing characters", "after top-level value"),
    ("control character", "in string literal"),
    ("invalid escape", "in string escape code"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// As kube-apiserver wrote it for the list of a namespace at revision 244 after `c03`.
    const RECORDED: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjQ0LCJzdGFydCI6Ii9jMDNcdTAwMDAifQ";

    fn decode_json(json: &str) -> Result<ContinueToken, String> {
        let token = URL_SAFE_NO_PAD.encode(json);
        ContinueToken::decode(&token, "/registry/configmaps/").map_err(|error| error.0)
    }

    #[test]
    fn tokens_are_those_of_kubernetes() {
        for prefix in [
            "/registry/configmaps/golden/",
            "/registry/configmaps/golden",
        ] {
            let token = ContinueToken::decode(RECORDED, prefix).expect("a token");
            assert_eq!(token.start, "/registry/configmaps/golden/c03\0");
            assert_eq!(token.revision, Some(244));
            assert_eq!(token.encode(prefix).as_deref(), Ok(RECORDED));
        }
    }

    #[test]
    fn a_negative_revision_is_the_newest() {
        let token = decode_json(r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"a\u0000"}"#);
        let token = token.expect("a token");
        assert_eq!(token.start, "/registry/configmaps/a\0");
        assert_eq!(token.revision, None);
        let again = token.encode("/registry/configmaps/").expect("a token");
        assert_eq!(
            ContinueToken::decode(&again, "/registry/configmaps"),
            Ok(token)
        );
    }

    #[test]
    fn a_start_elsewhere_is_not_encoded() {
        let token = ContinueToken {
            start: "/registry/podsx/a".to_owned(),
            revision: Some(1),
        };
        assert!(token.encode("/registry/pods/").is_err());
    }

    #[test]
    fn what_is_no_token_is_refused_in_go_words() {
        for (token, message) in [
            (
                "abc",
                "invalid character 'i' looking for beginning of value",
            ),
            ("!!", "illegal base64 data at input byte 0"),
            ("abcd=", "illegal base64 data at input byte 4"),
            ("abcde", "illegal base64 data at input byte 4"),
            ("", "unexpected end of JSON input"),
        ] {
            let error = ContinueToken::decode(token, "/a/").expect_err(token);
            assert_eq!(
                error.0,
                format!("continue key is not valid: {message}"),
                "{token}"
            );
        }
    }

    #[test]
    fn bad_content_is_refused_in_go_words() {
        for (json, message) in [
            ("{", "unexpected end of JSON input"),
            ("{}x", "invalid character 'x' after top-level value"),
            (r#"{"v" 1}"#, "invalid character '1' after object key"),
            (r#"{"v":1 "#, "unexpected end of JSON input"),
            (
                r#"{"v":1 2}"#,
                "invalid character '2' after object key:value pair",
            ),
            (
                "{v:1}",
                "invalid character 'v' looking for beginning of object key string",
            ),
            (
                "3",
                "json: cannot unmarshal number 3 into Go value of type storage.continueToken",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":"1"}"#,
                "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1.5}"#,
                "json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64",
            ),
            ("null", "server does not recognize this encoded version "),
            (
                r#"{"v":"v2"}"#,
                "server does not recognize this encoded version v2",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","start":"a"}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                r#"{"v":"meta.k8s.io/v1","rv":1}"#,
                "encoded start key empty (version meta.k8s.io/v1)",
            ),
        ] {
            let expected = format!("continue key is not valid: {message}");
            assert_eq!(decode_json(json), Err(expected), "{json}");
        }
    }

    #[test]
    fn a_start_does_not_lead_out_of_the_list() {
        for start in ["../x", "/../x", "a/../../x", "./a", "a//b", "a/", ".."] {
            let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":1,"start":"{start}"}}"#);
            let expected = format!("continue key is not valid: {start}");
            assert_eq!(decode_json(&json), Err(expected), "{start}");
        }
    }
}
