//! The meaning of scalars: Go's YAML library takes exactly these words and numbers for other things than texts.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The beginning of the tags of YAML itself.
const YAML_TAG: &str = "tag:yaml.org,2002:";

/// The meaning of a scalar.
#[derive(Debug, PartialEq)]
pub(super) enum Word {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer beyond those of [`Self::Int`].
    Uint(u64),
    Float(f64),
    Text(String),
}

impl Word {
    /// Returns the tag of its type.
    const fn tag(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Uint(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
        }
    }
}

/// Returns true for the key whose value is a map, or a list of maps, of members that are taken over.
pub(super) fn is_merge(text: &str, is_plain: bool, tag: Option<&str>) -> bool {
    let is_said = match tag {
        None => is_plain,
        Some(tag) => tag == "!" || tag.strip_prefix(YAML_TAG) == Some("merge"),
    };
    is_said && text == "<<"
}

/// Returns what a scalar says, which is plain if it has no quotes and is no block.
///
/// # Errors
/// Go's message about a scalar that is not of the type of its tag.
pub(super) fn read(text: Cow<'_, str>, is_plain: bool, tag: Option<&str>) -> Result<Word, String> {
    let Some(tag) = tag else {
        return Ok(if is_plain {
            plain(text)
        } else {
            Word::Text(text.into_owned())
        });
    };
    let wanted = tag.strip_prefix(YAML_TAG).unwrap_or_default();
    match wanted {
        "bool" | "float" | "int" | "null" | "timestamp" => {}
        "binary" => return binary(&text),
        // All else is a text, also with a tag that is not known.
        _ => return Ok(Word::Text(text.into_owned())),
    }
    if wanted == "timestamp" && is_like_a_date(&text) {
        return Ok(Word::Text(text.into_owned()));
    }
    match plain(Cow::Borrowed(&text)) {
        #[expect(clippy::cast_precision_loss, reason = "Go rounds it too")]
        Word::Int(number) if wanted == "float" => Ok(Word::Float(number as f64)),
        word if word.tag() == wanted => Ok(word),
        word => {
            let found = word.tag();
            Err(format!(
                "yaml: cannot decode !!{found} `{text}` as a !!{wanted}"
            ))
        }
    }
}

/// Returns the text that a scalar has in base64.
fn binary(text: &str) -> Result<Word, String> {
    let text: String = text.chars().filter(|it| !"\r\n".contains(*it)).collect();
    let bytes = STANDARD.decode(text);
    let bytes =
        bytes.map_err(|_| "yaml: !!binary value contains invalid base64 data".to_owned())?;
    Ok(Word::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns true for what begins as a date does.
fn is_like_a_date(text: &str) -> bool {
    let year = text.split_once('-').map_or("", |(year, _)| year);
    year.len() == 4 && year.bytes().all(|it| it.is_ascii_digit())
}

/// Returns what a scalar says that has neither a tag nor quotes.
fn plain(text: Cow<'_, str>) -> Word {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => return Word::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            return Word::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            return Word::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Word::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Word::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Word::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => between_digits(&text).then(|| float(&text.replace('_', ""))),
        b'+' | b'-' | b'0'..=b'9' => {
            let digits = text.replace('_', "");
            Some(integer(&digits).or_else(|| float(&digits)))
        }
        _ => None,
    };
    number
        .flatten()
        .unwrap_or_else(|| Word::Text(text.into_owned()))
}

/// Returns true if each underscore of a text stands between two digits.
fn between_digits(text: &str) -> bool {
    let is_digit = |part: Option<u8>| part.is_some_and(|it| it.is_ascii_digit());
    let parts: Vec<&[u8]> = text.as_bytes().split(|it| *it == b'_').collect();
    let mut pairs = parts.windows(2);
    pairs.all(|pair| is_digit(pair[0].last().copied()) && is_digit(pair[1].first().copied()))
}

/// Returns the integer of a text as Go writes them in programs: with a base by its prefix, of which `0` is the octal
/// one too.
fn integer(text: &str) -> Option<Word> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = if let Some(digits) = lower.strip_prefix("0x") {
        (16, digits)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        (2, digits)
    } else if let Some(digits) = lower.strip_prefix("0o") {
        (8, digits)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..])
    } else {
        (10, &*lower)
    };
    // There is no second sign.
    let digits = Some(digits).filter(|it| !it.starts_with(['+', '-']))?;
    let size = u64::from_str_radix(digits, radix).ok()?;
    if text.starts_with('-') {
        return 0_i64.checked_sub_unsigned(size).map(Word::Int);
    }
    match i64::try_from(size) {
        Ok(number) => Some(Word::Int(number)),
        Err(_) if text.starts_with('+') => None,
        Err(_) => Some(Word::Uint(size)),
    }
}

/// Returns the float of a text, unless it is none or too large.
fn float(text: &str) -> Option<Word> {
    let is_number =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let number: f64 = text
        .bytes()
        .all(is_number)
        .then(|| text.parse().ok())
        .flatten()?;
    number.is_finite().then_some(Word::Float(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_in_their_exact_spelling() {
        for (text, word) in [
            ("", Word::Null),
            ("~", Word::Null),
            ("NULL", Word::Null),
            ("yes", Word::Bool(true)),
            ("On", Word::Bool(true)),
            ("y", Word::Bool(true)),
            ("FALSE", Word::Bool(false)),
            ("-.Inf", Word::Float(f64::NEG_INFINITY)),
        ] {
            assert_eq!(plain(text.into()), word, "{text}");
        }
        for text in [
            "tRUE", "yEs", "nULL", "oN", ".iNF", ".Nan", "inf", "nan", "<<", "-", "+inf", "-nan",
        ] {
            assert_eq!(plain(text.into()), Word::Text(text.to_owned()));
        }
    }

    #[test]
    fn numbers_are_those_of_go() {
        for (text, word) in [
            ("0", Word::Int(0)),
            ("-0", Word::Int(0)),
            ("010", Word::Int(8)),
            ("0o10", Word::Int(8)),
            ("-0b11", Word::Int(-3)),
            ("0X1f", Word::Int(31)),
            ("1_000", Word::Int(1000)),
            ("1__0_", Word::Int(10)),
            ("+1", Word::Int(1)),
            ("-9223372036854775808", Word::Int(i64::MIN)),
            ("9223372036854775808", Word::Uint(1 << 63)),
            (
                "+9223372036854775808",
                Word::Float(9_223_372_036_854_775_808.0),
            ),
            (
                "18446744073709551616",
                Word::Float(18_446_744_073_709_551_616.0),
            ),
            ("08", Word::Float(8.0)),
            ("1_0.5", Word::Float(10.5)),
            ("5.", Word::Float(5.0)),
            ("+.5", Word::Float(0.5)),
            (".5_5", Word::Float(0.55)),
            ("1e3", Word::Float(1000.0)),
        ] {
            assert_eq!(plain(text.into()), word, "{text}");
        }
        for text in [
            "0x",
            "0b2",
            "0x+1",
            "--1",
            "1e999",
            "._5",
            ".",
            "..",
            "1e",
            "0x1p4",
            "190:20:30",
            "2001-01-01",
            "1,000",
        ] {
            assert_eq!(plain(text.into()), Word::Text(text.to_owned()));
        }
    }

    #[test]
    fn tags_say_the_type() {
        let read = |text: &'static str, tag: &str| {
            read(text.into(), true, Some(&format!("{YAML_TAG}{tag}")))
        };
        let text = |text: &str| Ok(Word::Text(text.to_owned()));
        for (is, tag, expected) in [
            ("1", "str", text("1")),
            ("1", "float", Ok(Word::Float(1.0))),
            ("yes", "bool", Ok(Word::Bool(true))),
            ("YWI=", "binary", text("ab")),
            ("2001-1-1", "timestamp", text("2001-1-1")),
            ("1", "seq", text("1")),
            ("1", "odd", text("1")),
            (
                "1.5",
                "int",
                Err("yaml: cannot decode !!float `1.5` as a !!int"),
            ),
            (
                "x",
                "timestamp",
                Err("yaml: cannot decode !!str `x` as a !!timestamp"),
            ),
            (
                "%",
                "binary",
                Err("yaml: !!binary value contains invalid base64 data"),
            ),
        ] {
            assert_eq!(read(is, tag), expected.map_err(str::to_owned), "{is} {tag}");
        }
        let text = Ok(Word::Text("1".to_owned()));
        assert_eq!(super::read("1".into(), true, Some("!")), text);
        assert_eq!(super::read("1".into(), false, None), text);
    }
}
