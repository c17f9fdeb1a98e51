//! `format` of strings. Follows the third version of cel-go's extension for strings, whose numbers with a decimal point
//! are written as in the USA.

use std::fmt::Write as _;

use kube_cel::cel::Value as CelValue;
use kube_cel::cel::objects::Key;
use ringwatch_apimachinery::go_text::quoted;

use super::failure::Failure;
use super::merged_lists::list_items;
use super::{conversions, type_values};

/// Decimal places unless a clause says how many.
const PLACES: usize = 6;

/// The largest width that Go's printer takes.
const WIDTH_MAX: usize = 1_000_000;

/// A clause of a format, such as `%.2f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause {
    Text,
    Decimal,
    /// A number with so many decimal places.
    Fixed(usize),
    /// A power of ten that has so many characters at least: cel-go takes the precision for a width.
    Scientific(usize),
    Binary,
    Hexadecimal {
        upper: bool,
    },
    Octal,
}

/// A part of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormatPart<'f> {
    Plain(&'f str),
    Clause(Clause),
}

/// The reason why a format or a value in it is wrong.
fn wrong(why: String) -> Failure {
    Failure::Other(why.into())
}

/// Formats values. Follows `parseFormatString`.
pub(super) fn format(format: &str, values: &[CelValue]) -> Result<String, Failure> {
    let mut made = String::new();
    let mut taken = 0;
    let mut rest = format;
    while let Some((part, after)) = next(rest, taken < values.len(), taken)? {
        rest = after;
        match part {
            FormatPart::Plain(text) => made.push_str(text),
            FormatPart::Clause(clause) => {
                let written = write(&mut made, clause, &values[taken]);
                written.map_err(|why| wrong(format!("error during formatting: {why}")))?;
                taken += 1;
            }
        }
    }
    Ok(made)
}

/// Reads the next part of a format, and returns it with what follows; `has_value` is false where no value is left for a
/// clause, of which so many were taken.
pub(super) fn next(
    format: &str,
    has_value: bool,
    taken: usize,
) -> Result<Option<(FormatPart<'_>, &str)>, Failure> {
    if format.is_empty() {
        return Ok(None);
    }
    let plain = format.find('%').unwrap_or(format.len());
    if plain > 0 {
        return Ok(Some((
            FormatPart::Plain(&format[..plain]),
            &format[plain..],
        )));
    }
    if let Some(rest) = format.strip_prefix("%%") {
        return Ok(Some((FormatPart::Plain("%"), rest)));
    }
    if !has_value {
        return Err(wrong(format!("index {taken} out of range")));
    }
    let clause = &format[1..];
    if clause.is_empty() {
        return Err(wrong("unexpected end of string".to_owned()));
    }
    let parsed = read_clause(clause);
    let (clause, rest) =
        parsed.map_err(|why| wrong(format!("could not parse formatting clause: {why}")))?;
    Ok(Some((FormatPart::Clause(clause), rest)))
}

/// Follows `parseFormattingClause` and `parsePrecision`.
fn read_clause(clause: &str) -> Result<(Clause, &str), String> {
    let mut places = None;
    let mut rest = clause;
    if let Some(after) = rest.strip_prefix('.') {
        let end = after.find(|it: char| !it.is_ascii_digit());
        let in_precision = |why: String| format!("error while parsing precision: {why}");
        let end = end
            .ok_or_else(|| in_precision("could not find end of precision specifier".to_owned()))?;
        let digits = &after[..end];
        places = Some(digits.parse::<usize>().map_err(|_| {
            let why = if digits.is_empty() {
                "invalid syntax"
            } else {
                "value out of range"
            };
            in_precision(format!(
                "error while converting precision to integer: strconv.Atoi: parsing {}: {why}",
                quoted(digits)
            ))
        })?);
        rest = &after[end..];
    }
    // It is a byte that cel-go shows.
    let letter = rest.as_bytes().first().copied().map_or(' ', char::from);
    let clause = match letter {
        's' => Clause::Text,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(places.unwrap_or(PLACES)),
        'e' => Clause::Scientific(places.unwrap_or(PLACES)),
        'b' => Clause::Binary,
        'x' => Clause::Hexadecimal { upper: false },
        'X' => Clause::Hexadecimal { upper: true },
        'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, &rest[1..]))
}

/// Returns the error of a value of a type that a clause does not take.
pub(super) fn unfit(clause: Clause, kind: &str) -> String {
    let takes = match clause {
        Clause::Text => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
             and timestamps"
        }
        Clause::Decimal => "decimal clause can only be used on integers",
        Clause::Fixed(_) => "fixed-point clause can only be used on doubles",
        Clause::Scientific(_) => "scientific clause can only be used on doubles",
        Clause::Binary => "only integers and bools can be formatted as binary",
        Clause::Hexadecimal { .. } => {
            "only integers, byte buffers, and strings can be formatted as hex"
        }
        Clause::Octal => "octal clause can only be used on integers",
    };
    format!("{takes}, was given {kind}")
}

fn write(made: &mut String, clause: Clause, value: &CelValue) -> Result<(), String> {
    // Writing to a string does not fail.
    let _ = match (clause, value) {
        (Clause::Text, value) => return text(made, value),
        (Clause::Decimal, CelValue::Int(it)) => write!(made, "{it}"),
        (Clause::Decimal, CelValue::UInt(it)) => write!(made, "{it}"),
        (Clause::Fixed(_) | Clause::Scientific(_), value) => {
            let unfit = || unfit(clause, type_values::name_of(value));
            let number = double(value).ok_or_else(unfit)?;
            made.push_str(&match clause {
                Clause::Scientific(width) => scientific(number, width),
                Clause::Fixed(places) => fixed(number, places),
                _ => String::new(),
            });
            Ok(())
        }
        // Go writes the sign of negative numbers.
        (Clause::Binary, CelValue::Int(it)) => {
            write!(made, "{}{:b}", sign(*it), it.unsigned_abs())
        }
        (Clause::Binary, CelValue::UInt(it)) => write!(made, "{it:b}"),
        (Clause::Binary, CelValue::Bool(it)) => write!(made, "{}", u8::from(*it)),
        (Clause::Octal, CelValue::Int(it)) => {
            write!(made, "{}{:o}", sign(*it), it.unsigned_abs())
        }
        (Clause::Octal, CelValue::UInt(it)) => write!(made, "{it:o}"),
        (Clause::Hexadecimal { upper }, value) => {
            let digits = match value {
                CelValue::Int(it) => format!("{}{:x}", sign(*it), it.unsigned_abs()),
                CelValue::UInt(it) => format!("{it:x}"),
                CelValue::String(it) => hexadecimal(it.as_bytes()),
                CelValue::Bytes(it) => hexadecimal(it),
                other => return Err(unfit(clause, type_values::name_of(other))),
            };
            made.push_str(&if upper { digits.to_uppercase() } else { digits });
            Ok(())
        }
        (clause, other) => return Err(unfit(clause, type_values::name_of(other))),
    };
    Ok(())
}

fn sign(number: i64) -> &'static str {
    if number < 0 { "-" } else { "" }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Returns the number of a double, or of one of the texts that stand for some.
fn double(value: &CelValue) -> Option<f64> {
    match value {
        CelValue::Float(number) => Some(*number),
        CelValue::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// Writes a number with so many decimal places, and a comma after each three digits before them.
fn fixed(number: f64, places: usize) -> String {
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    // Go's printer keeps the number of places in a byte, and the number that it rounds to in two with a sign.
    let least = places % (1 << 8);
    let mut digits = match i16::try_from(places % (1 << 16)) {
        Ok(most) => format!("{:.*}", usize::from(most.unsigned_abs()), number.abs()),
        Err(_) => number.abs().to_string(),
    };
    if !digits.contains('.') {
        digits.push('.');
    }
    let kept = digits.trim_end_matches('0').len();
    let point = digits.find('.').unwrap_or_default();
    digits.truncate(kept);
    while digits.len() < point + 1 + least {
        digits.push('0');
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut made = String::with_capacity(digits.len() * 4 / 3 + 1);
    if number < 0.0 {
        made.push('-');
    }
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            made.push(',');
        }
        made.push(digit);
    }
    if !fraction.is_empty() {
        made.push('.');
        made.push_str(fraction);
    }
    made
}

/// Writes a number as a power of ten, with an exponent of two digits at least.
fn scientific(number: f64, width: usize) -> String {
    let width = if width > WIDTH_MAX {
        0
    } else {
        width % (1 << 16)
    };
    if let Some(special) = special(number) {
        return format!("{special:>width$}");
    }
    // Zero has no sign.
    let digits = format!("{:.PLACES$e}", number + 0.0);
    let (digits, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ("⁻", exponent),
        None => ("", exponent),
    };
    let raised = ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"];
    let exponent = format!("{exponent:0>2}");
    let exponent: String = exponent
        .bytes()
        .map(|digit| raised[usize::from(digit - b'0')])
        .collect();
    let made = format!("{digits}×10{sign}{exponent}");
    format!("{made:>width$}")
}

/// Writes a value as `%s` does. Follows `FormatString`.
fn text(made: &mut String, value: &CelValue) -> Result<(), String> {
    match value {
        CelValue::Map(_) => return part(made, value),
        list if list_items(list).is_some() => return part(made, value),
        CelValue::Null => made.push_str("null"),
        CelValue::Opaque(_) => match type_values::name_in(value) {
            Some(name) => made.push_str(name),
            None => return Err(unfit(Clause::Text, type_values::name_of(value))),
        },
        other => {
            let converted = conversions::as_text(other);
            made.push_str(&converted.map_err(|why| {
                format!(
                    "could not convert argument {} to string",
                    quoted(&why.to_string())
                )
            })?);
        }
    }
    Ok(())
}

/// Writes a value within another one, as an expression has it. Follows `clauseForType` and `quoteForCEL`.
fn part(made: &mut String, value: &CelValue) -> Result<(), String> {
    if let Some(items) = list_items(value) {
        made.push('[');
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                made.push_str(", ");
            }
            part(made, item)?;
        }
        made.push(']');
        return Ok(());
    }
    match value {
        CelValue::String(it) => made.push_str(&quoted(it)),
        CelValue::Bytes(_) => {
            let mut inner = String::new();
            text(&mut inner, value)?;
            made.push('b');
            made.push_str(&quoted(&inner));
        }
        CelValue::Float(it) => {
            let number = match *it {
                it if it.is_nan() => "\"NaN\"".to_owned(),
                f64::INFINITY => "\"+Inf\"".to_owned(),
                f64::NEG_INFINITY => "\"-Inf\"".to_owned(),
                it => format!("{it:.PLACES$}"),
            };
            made.push_str(&number);
        }
        CelValue::Timestamp(_) | CelValue::Duration(_) => {
            let mut inner = String::new();
            text(&mut inner, value)?;
            let name = if matches!(value, CelValue::Duration(_)) {
                "duration"
            } else {
                "timestamp"
            };
            let _ = write!(made, "{name}({})", quoted(&inner));
        }
        CelValue::Map(map) => {
            let mut entries = Vec::with_capacity(map.map.len());
            for (key, value) in map.map.iter() {
                let key = match key {
                    Key::String(text) => quoted(text),
                    other => other.to_string(),
                };
                let mut written = String::new();
                part(&mut written, value)?;
                entries.push((key, written));
            }
            entries.sort();
            made.push('{');
            for (place, (key, value)) in entries.iter().enumerate() {
                let between = if place > 0 { ", " } else { "" };
                let _ = write!(made, "{between}{key}:{value}");
            }
            made.push('}');
        }
        CelValue::Opaque(_) if type_values::name_in(value).is_none() => {
            return Err(format!(
                "no formatting function for {}",
                type_values::name_of(value)
            ));
        }
        other => return text(made, other),
    }
    Ok(())
}
