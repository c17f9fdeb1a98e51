//! The conversions of values to other types, and of texts to addresses, which fail in the words of kube-apiserver.

use std::net::IpAddr;
use std::sync::Arc;

use chrono::DateTime;
use kube_cel::cel::Value as CelValue;
use ringwatch_apimachinery::go_address::{Address, parse_prefix};
use ringwatch_apimachinery::go_text::{self, quoted};

use super::arithmetic::{INT_OVERFLOW, UINT_OVERFLOW};
use super::equality::TWO_TO_63;
use super::failure::{Failure, ValueResult};
use super::{arithmetic, times, type_values, versions};

/// The beginning of the error of texts that are no network.
const NO_NETWORK: &str = "network address parse error during conversion from string";

/// The first number that is too large for an unsigned integer, as a double.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Converts a value to the type that a function is named after; `None` if it is no conversion.
pub(super) fn call(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    let [value] = values else { return None };
    Some(match name {
        "int" => to_int(value),
        "uint" => to_uint(value),
        "double" => to_double(value),
        "bool" => to_bool(value),
        "bytes" => match value {
            CelValue::Bytes(_) => Ok((*value).clone()),
            CelValue::String(text) => Ok(CelValue::Bytes(Arc::new(text.as_bytes().to_vec()))),
            _ => Err(Failure::NoOverload),
        },
        // That of addresses is the library's.
        "string" if !matches!(value, CelValue::Opaque(_)) => as_text(value).map(CelValue::from),
        "timestamp" => to_time(value),
        "duration" => to_duration(value),
        _ => return None,
    })
}

fn refuse<T>(why: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Other(why.into().into()))
}

/// Returns the error of a value that cannot be converted. Follows `ConvertToType` of cel-go.
fn no_conversion<T>(value: &CelValue, to: &str) -> Result<T, Failure> {
    let from = type_values::name_of(value);
    refuse(format!("type conversion error from '{from}' to '{to}'"))
}

#[allow(clippy::cast_possible_truncation, reason = "the number fits")]
fn to_int(value: &CelValue) -> ValueResult {
    let number = match value {
        CelValue::Int(number) => Some(*number),
        CelValue::UInt(number) => i64::try_from(*number).ok(),
        CelValue::Float(number) => {
            let fits = *number > -TWO_TO_63 && *number < TWO_TO_63;
            fits.then_some(*number as i64)
        }
        CelValue::String(text) => match text.parse() {
            Ok(number) => Some(number),
            Err(_) => return no_conversion(value, "int"),
        },
        CelValue::Timestamp(time) => Some(time.timestamp()),
        CelValue::Duration(duration) => duration.num_nanoseconds(),
        _ => return Err(Failure::NoOverload),
    };
    number.map_or_else(|| refuse(INT_OVERFLOW), |it| Ok(CelValue::Int(it)))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number fits"
)]
fn to_uint(value: &CelValue) -> ValueResult {
    let number = match value {
        CelValue::UInt(number) => Some(*number),
        CelValue::Int(number) => u64::try_from(*number).ok(),
        CelValue::Float(number) => {
            let fits = *number >= 0.0 && *number < TWO_TO_64;
            fits.then_some(*number as u64)
        }
        CelValue::String(text) if text.starts_with('+') => return no_conversion(value, "uint"),
        CelValue::String(text) => match text.parse() {
            Ok(number) => Some(number),
            Err(_) => return no_conversion(value, "uint"),
        },
        _ => return Err(Failure::NoOverload),
    };
    number.map_or_else(|| refuse(UINT_OVERFLOW), |it| Ok(CelValue::UInt(it)))
}

#[allow(clippy::cast_precision_loss, reason = "Go rounds in the same way")]
fn to_double(value: &CelValue) -> ValueResult {
    Ok(CelValue::Float(match value {
        CelValue::Float(number) => *number,
        CelValue::Int(number) => *number as f64,
        CelValue::UInt(number) => *number as f64,
        CelValue::String(text) => match read_double(text) {
            Some(number) => number,
            None => return no_conversion(value, "double"),
        },
        _ => return Err(Failure::NoOverload),
    }))
}

fn to_bool(value: &CelValue) -> ValueResult {
    match value {
        CelValue::Bool(flag) => Ok(CelValue::Bool(*flag)),
        CelValue::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(CelValue::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(CelValue::Bool(false)),
            _ => no_conversion(value, "bool"),
        },
        _ => Err(Failure::NoOverload),
    }
}

/// Returns a value as a string.
pub(super) fn as_text(value: &CelValue) -> Result<String, Failure> {
    Ok(match value {
        CelValue::String(text) => text.to_string(),
        CelValue::Bool(flag) => flag.to_string(),
        CelValue::Int(number) => number.to_string(),
        CelValue::UInt(number) => number.to_string(),
        CelValue::Float(number) => match *number {
            it if it.is_nan() => "NaN".to_owned(),
            f64::INFINITY => "+Inf".to_owned(),
            f64::NEG_INFINITY => "-Inf".to_owned(),
            it => go_text::float(it),
        },
        CelValue::Bytes(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => text,
            Err(_) => return refuse("invalid UTF-8 in bytes, cannot convert to string"),
        },
        CelValue::Timestamp(time) => times::write_time(*time),
        CelValue::Duration(duration) => times::write_duration(*duration),
        _ => return Err(Failure::NoOverload),
    })
}

fn to_time(value: &CelValue) -> ValueResult {
    match value {
        CelValue::Timestamp(_) => Ok(value.clone()),
        CelValue::String(text) => match times::read_time(text) {
            Ok(time) => arithmetic::time(Some(time)),
            Err(_) => no_conversion(value, "google.protobuf.Timestamp"),
        },
        CelValue::Int(seconds) => {
            let time = DateTime::from_timestamp(*seconds, 0);
            arithmetic::time(time.map(|it| it.fixed_offset()))
        }
        _ => Err(Failure::NoOverload),
    }
}

fn to_duration(value: &CelValue) -> ValueResult {
    match value {
        CelValue::Duration(_) => Ok(value.clone()),
        CelValue::String(text) => match times::read_duration(text) {
            Some(duration) => Ok(CelValue::Duration(duration)),
            None => no_conversion(value, "google.protobuf.Duration"),
        },
        // It is declared, and always fails.
        CelValue::Int(_) => no_conversion(value, "google.protobuf.Duration"),
        _ => Err(Failure::NoOverload),
    }
}

/// Returns the value of a function of addresses or versions where it differs from the library's: for texts that Go's
/// parsers do not take, though those of the library do, and for those about which they have words of their own.
pub(super) fn of_go(name: &str, values: &[&CelValue]) -> Option<ValueResult> {
    let text: &str = match values {
        [CelValue::String(text)] => text,
        [CelValue::Opaque(_), CelValue::String(text)] if name.starts_with("contains") => text,
        [CelValue::String(text), CelValue::Bool(_)] if name.ends_with("emver") => text,
        _ => return None,
    };
    let is_lenient = matches!(values, [_, CelValue::Bool(true)]);
    let why = match name {
        "isIP" => return Some(Ok(CelValue::Bool(address(text).is_ok()))),
        "isCIDR" => return Some(Ok(CelValue::Bool(network(text).is_ok()))),
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
        "semver" => versions::spelled(text, is_lenient).err(),
        _ => None,
    };
    why.map(refuse)
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

/// Spells versions as the library reads them.
pub(super) fn spelled(name: &str, mut arguments: Vec<CelValue>) -> Vec<CelValue> {
    let is_lenient = matches!(arguments.as_slice(), [_, CelValue::Bool(true)]);
    if let Some(CelValue::String(text)) = arguments.first()
        && name == "semver"
        && let Ok(version) = versions::spelled(text, is_lenient)
    {
        arguments = vec![CelValue::from(version)];
    }
    arguments
}

/// Reads a decimal number. Follows `strconv.ParseFloat`.
fn read_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_infinite = ["inf", "infinity"]
        .iter()
        .any(|it| unsigned.eq_ignore_ascii_case(it));
    if is_infinite || text.eq_ignore_ascii_case("nan") {
        return text.parse().ok();
    }
    let digits = without_underscores(unsigned)?;
    let number = match digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        Some(hexadecimal) => read_hexadecimal(hexadecimal)?,
        None => digits.parse().ok()?,
    };
    let signed = if text.starts_with('-') {
        -number
    } else {
        number
    };
    signed.is_finite().then_some(signed)
}

/// Leaves out the underscores of a number, which may stand between digits.
fn without_underscores(text: &str) -> Option<String> {
    if text.starts_with(['+', '-']) {
        return None;
    }
    let is_apart = text
        .split('_')
        .skip(1)
        .all(|it| it.starts_with(|it: char| it.is_ascii_hexdigit()));
    let before = text
        .rsplit('_')
        .skip(1)
        .all(|it| it.ends_with(|it: char| it.is_ascii_hexdigit()) || matches!(it, "0x" | "0X"));
    (is_apart && before).then(|| text.replace('_', ""))
}

/// Reads a hexadecimal number with a power of two, without the prefix.
#[allow(clippy::cast_precision_loss, reason = "what does not fit is refused")]
fn read_hexadecimal(text: &str) -> Option<f64> {
    let (digits, power) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let power: i32 = power.parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    Some(number as f64 * 2_f64.powi(power.checked_sub(places.checked_mul(4)?)?))
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
