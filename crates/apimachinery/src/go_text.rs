//! Texts as Go writes them: quoted strings, floats, durations, and values in errors about fields.

use std::fmt::Write;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use ringwatch::meta::json_text;
use serde_json::Value;

/// The decimal exponent from which on `%v` of Go writes a float with an exponent.
const EXPONENT_FROM: i32 = 6;

/// Matches a character that Go prints as it is: those that `strconv.IsPrint` of Go 1.26 accepts, which knows
/// Unicode 15.
static PRINTED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^[\p{L}\p{M}\p{N}\p{P}\p{S} &&\p{Age:15.0}]$";
    #[expect(clippy::expect_used, reason = "a constant, which a test compiles")]
    Regex::new(pattern).expect("a pattern")
});

/// Returns true for a character that Go prints as it is, as `unicode.IsPrint` does.
#[must_use]
pub fn is_printed(letter: char) -> bool {
    matches!(letter, ' '..='~')
        || !letter.is_ascii() && PRINTED.is_match(letter.encode_utf8(&mut [0; 4]))
}

/// Quotes a text as Go's `%q` does.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ' '..='~' => out.push(letter),
            _ if is_printed(letter) => out.push(letter),
            // Writing to a string does not fail.
            '\0'..='\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", letter as u32);
            }
            '\u{80}'..='\u{ffff}' => {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            '\u{10000}'.. => {
                let _ = write!(out, "\\U{:08x}", letter as u32);
            }
        }
    }
    out.push('"');
    out
}

/// Writes a float as Go's `%v` does: in the shortest digits, with an exponent from a million on and below 10^-4.
#[must_use]
pub fn float(float: f64) -> String {
    let (text, exponent) = with_exponent(float);
    if (-4..EXPONENT_FROM).contains(&exponent) {
        return float.to_string();
    }
    text
}

/// Writes a float in the shortest digits with an exponent, which has two digits at least; returns the exponent as well.
#[must_use]
pub fn with_exponent(float: f64) -> (String, i32) {
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    (
        format!("{digits}e{sign}{:02}", exponent.unsigned_abs()),
        exponent,
    )
}

/// Writes a value as Go's `json.Marshal` does: characters that are special in HTML or JavaScript are escaped.
#[must_use]
pub fn json(value: &Value) -> String {
    html_escaped(json_text(value))
}

/// Escapes the characters of a JSON text that are special in HTML or JavaScript, as Go's `json.Marshal` does.
#[must_use]
pub fn html_escaped(mut text: String) -> String {
    // JSON has these characters in strings alone.
    for special in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
        if text.contains(special) {
            text = text.replace(special, &format!("\\u{:04x}", u32::from(special)));
        }
    }
    text
}

/// Writes a value as errors about fields show it. Follows `ErrorDetail` of `field.Error`: texts are quoted, and lists
/// and objects are JSON in which characters that are special in HTML are escaped.
#[must_use]
pub fn bad_value(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) if !number.is_i64() => {
            number.as_f64().map_or_else(|| number.to_string(), float)
        }
        Value::Array(_) | Value::Object(_) => json(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Writes a duration as Go's `Duration.String` does, such as `1m2.5s`, `13ms` or `0s`.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, size) in [("ns", 1_u128), ("µs", 1_000), ("ms", 1_000_000)] {
        if nanos != 0 && nanos < size * 1000 {
            return format!("{}{unit}", decimal(nanos, size));
        }
    }
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let rest = u128::from(seconds % 60) * 1_000_000_000 + u128::from(duration.subsec_nanos());
    let rest = decimal(rest, 1_000_000_000);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

/// Writes `value / size` without trailing zeros; `size` is a power of ten.
fn decimal(value: u128, size: u128) -> String {
    let (whole, part) = (value / size, value % size);
    if part == 0 {
        return whole.to_string();
    }
    let digits = size.ilog10() as usize;
    let part = format!("{part:0digits$}");
    format!("{whole}.{}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_quoted_as_in_go() {
        for (text, written) in [
            ("", "\"\""),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("a\nb\t\u{1}", "\"a\\nb\\t\\x01\""),
            ("é世\u{a0}", "\"é世\\u00a0\""),
            ("a\u{202e}b\u{200b}", "\"a\\u202eb\\u200b\""),
            ("\u{e0001}😀", "\"\\U000e0001😀\""),
        ] {
            assert_eq!(quoted(text), written);
        }
    }

    /// Compares all characters with Go: the expected value is the FNV-1a hash of the bytes of
    /// `strconv.Quote(string(r))` for each rune `r` up to `unicode.MaxRune`, surrogates aside, as Go 1.26.4 computes
    /// it.
    #[test]
    fn all_characters_are_quoted_as_in_go() {
        const FNV_OFFSET: u64 = 14_695_981_039_346_656_037;
        const FNV_PRIME: u64 = 1_099_511_628_211;
        let mut hash = FNV_OFFSET;
        for letter in '\0'..=char::MAX {
            for byte in quoted(letter.encode_utf8(&mut [0; 4])).bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
            }
        }
        assert_eq!(hash, 17_300_926_779_830_634_428);
    }

    #[test]
    fn values_are_shown_as_in_errors_of_go() {
        for (value, shown) in [
            (json!("a<b\u{7}\u{200b}é"), r#""a<b\a\u200bé""#),
            (
                json!({"name": "a<b>&c\u{2028}"}),
                r#"{"name":"a\u003cb\u003e\u0026c\u2028"}"#,
            ),
            (json!(["<"]), r#"["\u003c"]"#),
            (json!(1000000), "1000000"),
            (json!(1e6), "1e+06"),
            (json!(123456.5), "123456.5"),
            (json!(1e-7), "1e-07"),
            (json!(0.0001), "0.0001"),
            (json!(null), "null"),
            (json!(true), "true"),
        ] {
            assert_eq!(bad_value(&value), shown);
        }
    }

    #[test]
    fn floats_are_written_like_go_does() {
        for (float, text) in [
            (10.0, "10"),
            (999_999.5, "999999.5"),
            (2_147_483_647.5, "2.1474836475e+09"),
            (0.5, "0.5"),
            (-2.25, "-2.25"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(super::float(float), text);
        }
    }

    #[test]
    fn durations_are_written_as_in_go() {
        for (nanos, written) in [
            (0, "0s"),
            (7, "7ns"),
            (1_500, "1.5µs"),
            (13_000_000, "13ms"),
            (501_234_567, "501.234567ms"),
            (1_000_000_000, "1s"),
            (62_500_000_000, "1m2.5s"),
            (3_600_000_000_000, "1h0m0s"),
        ] {
            assert_eq!(duration(Duration::from_nanos(nanos)), written);
        }
    }
}
