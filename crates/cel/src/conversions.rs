//! The conversions of texts to numbers, times, quantities and addresses, which fail in the words of kube-apiserver.
//!
//! The library's own take some texts that Go does not, and name what is wrong by its parsers.

use std::net::IpAddr;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;

use super::failure::{Failure, Outcome};

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

/// Returns the value of a function of addresses or conversion where it differs from the library's: for values that Go's
/// parsers do not take, though those of the library do.
pub(super) fn of_go(name: &str, values: &[&CelValue]) -> Option<Outcome> {
    let text = match values {
        [CelValue::String(text)] => text.as_str(),
        [CelValue::Bytes(bytes)] if name == "string" && std::str::from_utf8(bytes).is_err() => {
            let why = "invalid UTF-8 in bytes, cannot convert to string";
            return Some(Err(Failure::Other(why.into())));
        }
        _ => return None,
    };
    let is_right = match name {
        "uint" => !text.starts_with('+'),
        "double" => is_double(text),
        "duration" => is_duration(text),
        "isIP" | "ip" => is_address(text),
        "isCIDR" | "cidr" => is_network(text),
        _ => true,
    };
    let wrong = || match name {
        "isIP" | "isCIDR" => Ok(CelValue::Bool(false)),
        _ => failure(name, values, None),
    };
    (!is_right).then(wrong)
}

/// Returns true if `parseIPAddr` takes an address: one without zone that is not an address of IPv4 within IPv6.
fn is_address(text: &str) -> bool {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => address.to_ipv4_mapped().is_none(),
        other => other.is_ok(),
    }
}

/// Returns true if `parseCIDR` takes a network. Its length has no leading zeros.
fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.rsplit_once('/') else {
        return false;
    };
    let bits_max = if address.contains(':') { 128 } else { 32 };
    let is_plain =
        bits.bytes().all(|it| it.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    is_address(address) && is_plain && bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max)
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
    match name {
        "quantity" => return Err(Failure::Other(NO_QUANTITY.into())),
        "ip" | "cidr" if other.is_none() => {
            let why = "network address parse error during conversion from string";
            return Err(Failure::Other(why.into()));
        }
        _ => {}
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

    /// A conversion, texts that Go takes, and texts that it refuses.
    type Facts = (
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    );

    const FACTS: [Facts; 8] = [
        (
            "int",
            &["1", "+1", "-1", "-0", "00", "-9223372036854775808"],
            &["", " 1", "1_0", "0x1", "1.0", "abc", "9223372036854775808"],
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
        (
            "ip",
            &["1.2.3.4", "::1", "fe80::1"],
            &[
                "",
                "01.2.3.4",
                "::ffff:1.2.3.4",
                "fe80::1%eth0",
                "1:2:3:4::5:6:7:8",
            ],
        ),
        (
            "cidr",
            &["1.2.3.4/0", "1.2.3.4/32", "::1/128"],
            &[
                "",
                "1.2.3.4",
                "10.10.010.10/24",
                "1.2.3.4/33",
                "1.2.3.4/08",
                "1.2.3.4/+8",
                "::/129",
                "1:2:3:4::5:6:7:8/64",
                "::ffff:1.2.3.4/128",
            ],
        ),
    ];

    #[test]
    fn texts_are_converted_as_by_go() {
        for (name, right, wrong) in FACTS {
            for text in right {
                assert!(convert(name, text).is_some(), "{name} {text:?}");
            }
            for text in wrong {
                assert!(convert(name, text).is_none(), "{name} {text:?}");
            }
        }
    }
}
