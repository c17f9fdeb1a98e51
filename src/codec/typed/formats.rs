//! Strings with a format of their own: bytes, quantities, times.

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine as _};
use serde_json::Value;

use super::TypeError;
use crate::codec::time as times;

/// Base64 as Go decodes it: the last letter may have excess bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The letters of base64 that stand for whole bytes.
const BASE64_LETTERS: usize = 4;

/// The suffixes of quantities, without exponents.
const SUFFIXES: &[&str] = &[
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
];

/// The letters of the suffixes of quantities.
const SUFFIX_LETTERS: &str = "eEinumkKMGTP";

/// The layout of times in Go.
const TIME_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// The layout of times with microseconds in Go.
const MICRO_TIME_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// The parts of a time up to its seconds: its separator or layout, the first value that is too large, and its name.
const TIME_PARTS: &[(&str, u32, &str)] = &[
    ("2006", u32::MAX, ""),
    ("-", 0, ""),
    ("01", 13, "month"),
    ("-", 0, ""),
    ("02", 32, "day"),
    ("T", 0, ""),
    ("15", 24, "hour"),
    (":", 0, ""),
    ("04", 60, "minute"),
    (":", 0, ""),
    ("05", 60, "second"),
];

/// Decodes base64 as Go does: it may contain line breaks, and bits that stand for nothing need not be zero.
///
/// # Errors
/// [`TypeError::Base64`] with the place of the first byte that is wrong.
pub fn base64(text: &str) -> Result<Vec<u8>, TypeError> {
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    if !text.bytes().any(|byte| is_break(&byte)) {
        return base64_line(text).map_err(TypeError::Base64);
    }
    base64_line(&text.replace(['\r', '\n'], "")).map_err(|at| {
        let mut letters = text.bytes().enumerate().filter(|(_, byte)| !is_break(byte));
        TypeError::Base64(letters.nth(at).map_or(text.len(), |(at, _)| at))
    })
}

/// Decodes base64 without line breaks; the error is the place of the first byte that is wrong.
fn base64_line(text: &str) -> Result<Vec<u8>, usize> {
    BASE64
        .decode(text)
        .map_err(|error| match (error, after_padding(text)) {
            (DecodeError::InvalidByte(at, byte), Some(end)) if byte != b'=' && at < end => at,
            (_, Some(end)) => end,
            (DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _), None) => at,
            _ if text.ends_with('=') => text.len(),
            _ => text.len() / BASE64_LETTERS * BASE64_LETTERS,
        })
}

/// Checks base64 and writes it as Go does once it has read it: without line breaks, and with zeros for bits that stand
/// for nothing.
pub(super) fn canonical_base64(text: &mut String) -> Result<(), TypeError> {
    const GROUP_BYTES: usize = 3;
    let decoded = base64(text)?;
    let (_, last) = decoded.as_chunks::<GROUP_BYTES>();
    if text.contains(['\r', '\n']) || !text.ends_with(&BASE64.encode(last)) {
        *text = BASE64.encode(decoded);
    }
    Ok(())
}

/// Writes bytes as base64.
pub(super) fn to_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Returns the place after the padding, if something follows it.
fn after_padding(text: &str) -> Option<usize> {
    let at = text.find('=')?;
    let end = match at % BASE64_LETTERS {
        2 if text[at + 1..].starts_with('=') => at + 2,
        3 => at + 1,
        _ => return None,
    };
    (end < text.len()).then_some(end)
}

/// Checks a quantity, which may be a number. White space around it is removed, and one without digits becomes zero.
/// Follows `ParseQuantity`.
pub(super) fn quantity(value: &mut Value) -> Result<(), TypeError> {
    match value {
        Value::Number(number) => quantity_text(&number.to_string()).map(|_| ()),
        Value::String(text) => {
            let has_digits = quantity_text(text.trim())?;
            if !has_digits {
                *value = Value::from("0");
            } else if text.trim().len() < text.len() {
                *value = Value::String(text.trim().to_owned());
            }
            Ok(())
        }
        _ => Err(TypeError::Quantity),
    }
}

/// Checks the text of a quantity, and returns true if it has digits: a sign, a point or a suffix alone mean zero.
fn quantity_text(text: &str) -> Result<bool, TypeError> {
    /// The suffixes before which there must be digits: zero does not fit into the short way of Go's parser.
    const LARGE: [&str; 2] = ["Pi", "Ei"];
    /// The least exponent of the short way.
    const EXPONENT_MIN: i64 = -9;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number_end = |text: &str| text.find(|it: char| !it.is_ascii_digit());
    let (whole, rest) = unsigned.split_at(number_end(unsigned).unwrap_or(unsigned.len()));
    let fraction = rest.strip_prefix('.').unwrap_or_default();
    let fraction = &fraction[..number_end(fraction).unwrap_or(fraction.len())];
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    if text.is_empty() {
        return Err(TypeError::Quantity);
    }
    let suffix = match rest.strip_prefix('.') {
        Some(rest) => &rest[fraction.len()..],
        None => rest,
    };
    if SUFFIXES.contains(&suffix) {
        let fits = has_digits || !LARGE.contains(&suffix);
        return fits.then_some(has_digits).ok_or(TypeError::QuantityNumber);
    }
    let digits = suffix.trim_start_matches(|it| SUFFIX_LETTERS.contains(it));
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    if !digits.bytes().all(|it| it.is_ascii_digit()) {
        return Err(TypeError::Quantity);
    }
    let exponent = suffix.strip_prefix(['e', 'E']);
    match exponent.map(str::parse::<i64>) {
        Some(Ok(exponent)) if has_digits || exponent >= EXPONENT_MIN => Ok(has_digits),
        Some(Ok(_)) => Err(TypeError::QuantityNumber),
        _ => Err(TypeError::QuantitySuffix),
    }
}

/// Checks a time, as Go's `time.Parse` does; with `micros` it must have all six digits of the microseconds.
pub(super) fn time(text: &str, micros: bool) -> Result<(), TypeError> {
    let layout = if micros {
        MICRO_TIME_LAYOUT
    } else {
        TIME_LAYOUT
    };
    let bad = |rest: &str, element| TypeError::Time {
        text: text.to_owned(),
        layout,
        rest: rest.to_owned(),
        element,
    };
    let no_such = |problem: String| TypeError::NoSuchTime {
        text: text.to_owned(),
        problem,
    };
    let mut rest = text;
    for (element, end, name) in TIME_PARTS {
        let is_number = *end > 0;
        let part = rest.get(..element.len()).filter(|part| {
            *part == *element || is_number && part.bytes().all(|it| it.is_ascii_digit())
        });
        let part = part.ok_or_else(|| bad(rest, element))?;
        if is_number && part.parse::<u32>().is_ok_and(|it| it >= *end) {
            return Err(no_such(format!("{name} out of range")));
        }
        rest = &rest[element.len()..];
    }
    let digits = rest.strip_prefix('.').unwrap_or_default();
    let digits = digits.bytes().take_while(u8::is_ascii_digit).count();
    if micros && digits < 6 {
        return Err(bad(rest, ".000000"));
    }
    if digits > 0 {
        rest = &rest[1 + if micros { 6 } else { digits }..];
    }
    let zone = match rest.as_bytes() {
        [b'Z', ..] => 1,
        [b'+' | b'-', a, b, b':', c, d, ..]
            if [a, b, c, d].iter().all(|it| it.is_ascii_digit()) =>
        {
            6
        }
        _ => return Err(bad(rest, "Z07:00")),
    };
    if rest.len() > zone {
        return Err(no_such(format!("extra text: {:?}", &rest[zone..])));
    }
    // The only remaining errors are a day that its month does not have, and one before the year 0 or after 9999 in UTC.
    match times::parse(text) {
        Some(_) => Ok(()),
        None => Err(no_such("day out of range".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn base64_is_that_of_go() {
        for (text, bytes) in [("", ""), ("YQ==", "a"), ("YR==", "a"), ("Y\nWI=\n", "ab")] {
            assert_eq!(base64(text), Ok(bytes.as_bytes().to_vec()), "{text}");
        }
        for (text, at) in [
            ("!!", 0),
            ("YQ=", 3),
            ("YWI", 0),
            ("YWJjZ", 4),
            ("YWJj!A==", 4),
            ("Y Q==", 1),
            ("YWJj\nY Q==", 6),
        ] {
            assert_eq!(base64(text), Err(TypeError::Base64(at)), "{text}");
        }
    }

    #[test]
    fn base64_is_written_in_one_way() {
        for (text, canonical) in [
            ("", ""),
            ("YWJj", "YWJj"),
            ("YQ==", "YQ=="),
            ("YR==", "YQ=="),
            ("YWJjYWK=", "YWJjYWI="),
            ("YW\nJj\r\n", "YWJj"),
        ] {
            let mut text = text.to_owned();
            assert_eq!(canonical_base64(&mut text), Ok(()));
            assert_eq!(text, canonical);
        }
    }

    #[test]
    fn quantities_are_those_of_kubernetes() {
        for text in [
            "1", "0", "100m", "1Gi", "12e6", "1E3", "5e-1", "-.5", "+1.", " 1 ", "1E",
        ] {
            assert_eq!(quantity(&mut json!(text)), Ok(()), "{text}");
        }
        assert_eq!(quantity(&mut json!(0.5)), Ok(()));
        for text in ["-", "+", ".", "-.", "Gi", "m", "e5", "+E-9", " - "] {
            let mut zero = json!(text);
            assert_eq!(quantity(&mut zero), Ok(()), "{text}");
            assert_eq!(zero, "0", "{text}");
        }
        for text in ["Pi", "-Ei", "e-10"] {
            assert_eq!(
                quantity(&mut json!(text)),
                Err(TypeError::QuantityNumber),
                "{text}"
            );
        }
        for text in ["", " ", "x", "1x", "1.2.3", "1 Gi", "..", "- 1"] {
            let found = quantity(&mut json!(text));
            assert_eq!(found, Err(TypeError::Quantity), "{text}");
        }
        for text in ["1KiB", "1e", "1Ki5", "1ee5", "--1"] {
            assert!(quantity(&mut json!(text)).is_err(), "{text}");
        }
        assert_eq!(quantity(&mut json!(true)), Err(TypeError::Quantity));
    }

    #[test]
    fn times_are_those_of_go() {
        for text in [
            "2020-02-29T23:59:59Z",
            "2020-01-01T00:00:00.5Z",
            "2020-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.123456789+00:01",
        ] {
            assert_eq!(time(text, false), Ok(()), "{text}");
        }
        assert_eq!(time("2020-01-01T00:00:00.000001Z", true), Ok(()));
        let words = |text, micros| time(text, micros).expect_err(text).to_string();
        assert_eq!(
            words("yesterday", false),
            "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\""
        );
        assert_eq!(
            words("2020-01-01T00:00:00Z", true),
            "parsing time \"2020-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\""
        );
        for (text, problem) in [
            ("2020-13-01T00:00:00Z", "month out of range"),
            ("2021-02-29T00:00:00Z", "day out of range"),
            ("9999-12-32T00:00:00Z", "day out of range"),
            ("9999-02-29T23:00:00Z", "day out of range"),
            ("2021-02-28T00:00:00Zé", "extra text: \"é\""),
        ] {
            assert_eq!(
                words(text, false),
                format!("parsing time {text:?}: {problem}")
            );
        }
        for text in [
            "",
            "2020",
            "2020-01-01",
            "2020-01-01T00:00:00",
            "2020-01-01 00:00:00Z",
            "é",
        ] {
            assert!(time(text, false).is_err(), "{text}");
        }
    }
}
