//! The conversions of texts to numbers, times and quantities, which fail in the words of kube-apiserver.
//!
//! The library's own take some texts that Go does not, and name what is wrong by its parsers.

use std::sync::Arc;

use kube_cel::cel::Value as CelValue;

use super::failure::Failure;

/// The conversions of texts, each with the type that it gives. Follows `String.ConvertToType` of cel-go.
const CONVERSIONS: [(&str, &str); 5] = [
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("duration", "google.protobuf.Duration"),
    ("timestamp", "google.protobuf.Timestamp"),
];

/// The error of texts that are no quantity. Follows `resource.ErrFormatWrong`.
const NO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Refuses the texts that Go's parsers do not take, though those of the library do.
pub(super) fn check(name: &str, values: &[&CelValue]) -> Result<(), Failure> {
    let [CelValue::String(text)] = values else {
        return Ok(());
    };
    let is_right = match name {
        "uint" => !text.starts_with('+'),
        "double" => is_double(text),
        "duration" => is_duration(text),
        _ => return Ok(()),
    };
    if is_right {
        Ok(())
    } else {
        failure(name, values, None)
    }
}

/// Spells the unit of microseconds in arguments as the library reads it.
pub(super) fn spelled(name: &str, mut arguments: Vec<CelValue>) -> Vec<CelValue> {
    if let ("duration", [CelValue::String(text)]) = (name, arguments.as_mut_slice())
        && text.contains(['µ', 'μ'])
    {
        *text = Arc::new(text.replace(['µ', 'μ'], "u"));
    }
    arguments
}

/// Returns the failure of a function, which is that of a conversion if it is one.
pub(super) fn failure<T>(
    name: &str,
    values: &[&CelValue],
    other: Option<Failure>,
) -> Result<T, Failure> {
    let [CelValue::String(_)] = values else {
        return Err(other.unwrap_or(Failure::NoOverload));
    };
    if name == "quantity" {
        return Err(Failure::Other(NO_QUANTITY.into()));
    }
    match CONVERSIONS.iter().find(|(known, _)| *known == name) {
        Some((_, kind)) => {
            let why = format!("type conversion error from 'string' to '{kind}'");
            Err(Failure::Other(why.into()))
        }
        None => Err(other.unwrap_or(Failure::NoOverload)),
    }
}

/// Returns true if `strconv.ParseFloat` takes a decimal number.
fn is_double(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['+', '-']);
    let is_finite = text.parse::<f64>().is_ok_and(f64::is_finite);
    let is_infinite = ["inf", "infinity"]
        .iter()
        .any(|it| unsigned.eq_ignore_ascii_case(it));
    is_finite || is_infinite || text.eq_ignore_ascii_case("nan")
}

/// Returns true if `time.ParseDuration` takes a text.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut nanoseconds = 0.0;
    let mut parts = 0;
    while !rest.is_empty() {
        let is_number = |it: char| it.is_ascii_digit() || it == '.';
        let end = rest.find(|it| !is_number(it)).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let end = tail.find(is_number).unwrap_or(tail.len());
        let (unit, after) = tail.split_at(end);
        let has_digit = number.contains(|it: char| it.is_ascii_digit());
        let (true, Some(unit), Ok(number)) =
            (has_digit, unit_nanoseconds(unit), number.parse::<f64>())
        else {
            return false;
        };
        nanoseconds += number * unit;
        parts += 1;
        rest = after;
    }
    parts > 0 && nanoseconds <= DURATION_NANOSECONDS_MAX
}

/// The longest duration, in nanoseconds: 2^63.
const DURATION_NANOSECONDS_MAX: f64 = 9_223_372_036_854_775_808.0;

fn unit_nanoseconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3_600e9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::calls::convert;

    #[test]
    fn texts_are_converted_as_by_go() {
        for (name, right, wrong) in [
            (
                "int",
                &["1", "+1", "-1", "-0", "00", "-9223372036854775808"][..],
                &["", " 1", "1_0", "0x1", "1.0", "abc", "9223372036854775808"][..],
            ),
            (
                "uint",
                &["1", "00", "9223372036854775808"],
                &["", "+1", "-1", "-0", "1.0"],
            ),
            (
                "double",
                &[
                    "1", "+1", "1.", ".5", "1e3", "1E+3", "inf", "Infinity", "-Inf", "+inf", "NaN",
                    "1e-400",
                ],
                &["", " 1", "0x1", ".", "1e", "infinit", "-nan", "1e400", "1d"],
            ),
            (
                "duration",
                &[
                    "1h",
                    "0",
                    "1.5s",
                    ".5s",
                    "5.s",
                    "-1m",
                    "+1m",
                    "1h2m3s4ms5us6ns",
                    "1µs",
                    "1h1h",
                    "00001h",
                ],
                &[
                    "",
                    "1d",
                    "1",
                    "1 s",
                    "s",
                    "-",
                    "+",
                    ".s",
                    "1e3s",
                    "2562048h",
                    "99999999999999999999h",
                    "A b/",
                ],
            ),
            (
                "timestamp",
                &[
                    "2020-01-01T00:00:00Z",
                    "2020-01-01T00:00:00.5Z",
                    "2020-01-01T00:00:00+01:00",
                ],
                &[
                    "",
                    "2020-01-01",
                    "2020-01-01T00:00:00",
                    "2020-01-01T24:00:00Z",
                    "2020-02-30T00:00:00Z",
                ],
            ),
            ("quantity", &["1Gi", "-1", "0.5"], &["", "abc", "1GI"]),
        ] {
            for text in right {
                assert!(convert(name, text).is_some(), "{name} {text:?}");
            }
            for text in wrong {
                assert!(convert(name, text).is_none(), "{name} {text:?}");
            }
        }
    }
}
