//! The conversions of texts to numbers, times, quantities and addresses, which fail in the words of kube-apiserver.
//!
//! The library's own take some texts that Go does not, and name what is wrong by its parsers.

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use kube_cel::cel::Value as CelValue;
use ringwatch_apimachinery::go_address::{Address, parse_prefix};
use ringwatch_apimachinery::go_text::quoted;

use super::failure::{Failure, ValueResult};
use super::versions;

/// The conversions of texts, each with the type that it gives. Follows `String.ConvertToType` of cel-go.
const CONVERSIONS: [(&str, &str); 5] = [
    ("int", "int"),
    ("uint", "uint"),
    ("double", "double"),
    ("duration", "google.protobuf.Duration"),
    ("timestamp", "google.protobuf.Timestamp"),
];

/// The error of texts that have not the form of a quantity. Follows `resource.ErrFormatWrong`.
const NO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The error of quantities with a suffix that there is not. Follows `resource.ErrSuffix`.
const NO_SUFFIX: &str = "unable to parse quantity's suffix";

/// The beginning of the error of texts that are no network.
const NO_NETWORK: &str = "network address parse error during conversion from string";

/// The suffixes of quantities, beside exponents.
const SUFFIXES: [&str; 16] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
];

/// The first second of the year 1, and the last one of the year 9999: `minUnixTime` and `maxUnixTime` of cel-go.
const SECONDS: RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Returns the value of a function of addresses or conversion where it differs from the library's: for values that Go's
/// parsers do not take, though those of the library do, and for those about which they have words of their own.
pub(super) fn of_go(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    let text: &str = match values {
        [CelValue::String(text)] => text,
        [CelValue::Opaque(_), CelValue::String(text)] if name.starts_with("contains") => text,
        [CelValue::String(text), CelValue::Bool(_)] if name.ends_with("emver") => text,
        [CelValue::Bytes(bytes)] if name == "string" && std::str::from_utf8(bytes).is_err() => {
            let why = "invalid UTF-8 in bytes, cannot convert to string";
            return Some(refuse(why));
        }
        _ => return None,
    };
    let is_lenient = matches!(values, [_, CelValue::Bool(true)]);
    let why = match name {
        "uint" if text.starts_with('+') => return Some(failure(name, values, None)),
        "double" if !is_double(text) => return Some(failure(name, values, None)),
        "duration" if !is_duration(text) => return Some(failure(name, values, None)),
        "isIP" => return Some(Ok(CelValue::Bool(address(text).is_ok()))),
        "isCIDR" => return Some(Ok(CelValue::Bool(network(text).is_ok()))),
        "isQuantity" => return Some(Ok(CelValue::Bool(wrong_quantity(text).is_none()))),
        "isSemver" => {
            let version = versions::spelled(text, is_lenient);
            return Some(Ok(CelValue::Bool(version.is_ok())));
        }
        "containsIP" if address(text).is_err() => return Some(Err(Failure::NoOverload)),
        "ip" | "ip.isCanonical" => address(text).err(),
        // Kubernetes tells twice what this is about.
        "cidr" | "containsCIDR" => network(text)
            .err()
            .map(|why| format!("{NO_NETWORK}: {why}")),
        "quantity" => wrong_quantity(text).map(str::to_owned),
        "semver" => versions::spelled(text, is_lenient).err(),
        _ => None,
    };
    why.map(refuse)
}

fn refuse(why: impl Into<String>) -> ValueResult {
    Err(Failure::Other(why.into().into()))
}

/// Reads an address without zone that is not one of IPv4 within IPv6; the error is in the words of Kubernetes. Follows
/// `parseIPAddr`.
fn address(text: &str) -> Result<IpAddr, String> {
    let shown = quoted(text);
    let address = Address::parse(text).map_err(|why| {
        format!("IP Address {shown} parse error during conversion from string: {why}")
    })?;
    if !address.zone.is_empty() {
        return Err(format!("IP address {shown} with zone value is not allowed"));
    }
    not_mapped(address.ip, &shown)
}

/// Reads the address of a network; the error is in the words of Kubernetes. Follows `parseCIDR`.
fn network(text: &str) -> Result<IpAddr, String> {
    let (address, _) = parse_prefix(text).map_err(|why| format!("{NO_NETWORK}: {why}"))?;
    not_mapped(address, &quoted(text))
}

fn not_mapped(address: IpAddr, shown: &str) -> Result<IpAddr, String> {
    match address {
        IpAddr::V6(mapped) if mapped.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"))
        }
        other => Ok(other),
    }
}

/// Returns what is wrong with a quantity. Follows `ParseQuantity`, for which digits may be missing.
fn wrong_quantity(text: &str) -> Option<&'static str> {
    let suffix = after_digits(text.strip_prefix(['+', '-']).unwrap_or(text));
    let suffix = suffix.strip_prefix('.').map_or(suffix, after_digits);
    let exponent = suffix.trim_start_matches(|it: char| "eEinumkKMGTP".contains(it));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if text.is_empty() || !after_digits(exponent).is_empty() {
        return Some(NO_QUANTITY);
    }
    let exponent = suffix.strip_prefix(['e', 'E']);
    let is_known = SUFFIXES.contains(&suffix)
        || exponent.is_some_and(|exponent| exponent.parse::<i64>().is_ok());
    (!is_known).then_some(NO_SUFFIX)
}

fn after_digits(text: &str) -> &str {
    text.trim_start_matches(|it: char| it.is_ascii_digit())
}

/// Spells arguments as the library reads them: the unit of microseconds, versions, and quantities without digits.
pub(super) fn spelled(name: &str, mut arguments: Vec<CelValue>) -> Vec<CelValue> {
    let is_lenient = matches!(arguments.as_slice(), [_, CelValue::Bool(true)]);
    let Some(CelValue::String(text)) = arguments.first_mut() else {
        return arguments;
    };
    match name {
        "duration" if text.contains(['µ', 'μ']) => {
            *text = Arc::new(text.replace(['µ', 'μ'], "u"));
        }
        "quantity" if !text.contains(|it: char| it.is_ascii_digit()) => {
            *text = Arc::new("0".to_owned());
        }
        "semver" => {
            if let Ok(version) = versions::spelled(text, is_lenient) {
                arguments = vec![CelValue::from(version)];
            }
        }
        _ => {}
    }
    arguments
}

/// Returns the value of a conversion by the library, unless kube-apiserver has no such value.
pub(super) fn in_range(value: CelValue) -> ValueResult {
    match value {
        CelValue::Timestamp(time) if !SECONDS.contains(&time.timestamp()) => {
            refuse("timestamp overflow")
        }
        other => Ok(other),
    }
}

/// Returns the failure of a function, which is that of a conversion if it is one.
pub(super) fn failure<T>(
    name: &str,
    values: &[&CelValue],
    other: Option<Failure>,
) -> Result<T, Failure> {
    let conversion = CONVERSIONS.iter().find(|(known, _)| *known == name);
    let why: Cow<'static, str> = match (values, conversion) {
        ([CelValue::String(_)], Some((_, kind))) => {
            format!("type conversion error from 'string' to '{kind}'").into()
        }
        ([CelValue::String(_)], None) if name == "quantity" => NO_QUANTITY.into(),
        ([CelValue::Opaque(_)], None) if name == "asInteger" => {
            "cannot convert value to integer".into()
        }
        _ => return Err(other.unwrap_or(Failure::NoOverload)),
    };
    Err(Failure::Other(why))
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

    const FACTS: [Facts; 9] = [
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
        (
            "quantity",
            &["1Gi", "-1", "0.5", "1e3", "1E-3", "1.G", "m", "+", "-.k"],
            &[
                "",
                "abc",
                "1GI",
                " 1",
                "1 ",
                "1e",
                "1mm",
                "1.5.5",
                "--1",
                "1e99999999999999999999",
            ],
        ),
        (
            "semver",
            &["1.2.3", "1.2.3-a.1+b", "0.0.0-0a"],
            &[
                "",
                "1",
                "1.2",
                "v1.2.3",
                "01.2.3",
                "1.2.3-01",
                "1.2.3-",
                "1.2.3+",
                "1.2.3-a_b",
            ],
        ),
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
