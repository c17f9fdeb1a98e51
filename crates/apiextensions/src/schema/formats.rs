//! The formats of strings and numbers that kube-apiserver checks. Others say nothing.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;
use ringwatch_apimachinery::go_url::Url;
use ringwatch_apimachinery::validation::formats::{dns_label, dns_subdomain};
use serde_json::{Map, Value};

use super::kind::JsonType;

/// A format that is checked.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// The name, as the schema has it.
    name: &'static str,
    check: FormatCheck,
}

/// The check of values, of one type.
#[derive(Clone, Copy)]
enum FormatCheck {
    /// True if a string has the format.
    Text(fn(&str) -> bool),
    /// True if a number has the format.
    Number(fn(&Value) -> bool),
}

impl std::fmt::Debug for Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

impl Format {
    /// Returns the format of that name for values of a type; `None` if it is not known there. Follows
    /// `StripUnsupportedFormatsPostProcessorForVersion`.
    pub(super) fn named(name: &str, kind: Option<JsonType>) -> Option<Self> {
        let known = match kind {
            None | Some(JsonType::String) => {
                // Dashes in names do not count.
                let plain = name.replace('-', "");
                let found = FORMATS
                    .iter()
                    .find(|(known, _)| known.replace('-', "") == plain);
                found.map(|(name, check)| (*name, FormatCheck::Text(*check)))
            }
            Some(JsonType::Integer) => number(&INTEGER_FORMATS, name),
            Some(JsonType::Number) => number(&NUMBER_FORMATS, name),
            Some(JsonType::Object | JsonType::Array | JsonType::Boolean) => None,
        };
        known.map(|(name, check)| Self { name, check })
    }

    /// Returns the name of the format, as `format` has it.
    pub(super) fn name(self) -> &'static str {
        self.name
    }

    /// Returns true if a string has the format, or the format is one of numbers.
    pub(super) fn accepts(self, text: &str) -> bool {
        match self.check {
            FormatCheck::Text(check) => check(text),
            FormatCheck::Number(_) => true,
        }
    }

    /// Returns true if a number has the format, or the format is one of strings.
    pub(super) fn has(self, number: &Value) -> bool {
        match self.check {
            FormatCheck::Text(_) => true,
            FormatCheck::Number(check) => check(number),
        }
    }
}

/// Returns the formats in a schema that are not known, as they are written, each time that one is there. Follows
/// `getUnrecognizedFormatsInSchema`.
#[must_use]
pub fn unrecognized_formats(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_unrecognized(schema, &mut found);
    found
}

fn collect_unrecognized(schema: &Value, found: &mut Vec<String>) {
    let Value::Object(schema) = schema else {
        return;
    };
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    let format = text("format");
    if !format.is_empty() && Format::named(format, JsonType::named(text("type"))).is_none() {
        found.push(format.to_owned());
    }
    for name in ["items", "not", "additionalProperties", "additionalItems"] {
        if let Some(inner) = schema.get(name) {
            collect_unrecognized(inner, found);
        }
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let inner = schema.get(name).and_then(Value::as_array);
        let inner = inner.into_iter().flatten();
        inner.for_each(|inner| collect_unrecognized(inner, found));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(Map::values);
    properties.for_each(|inner| collect_unrecognized(inner, found));
}

type NumberFormat = (&'static str, fn(&Value) -> bool);

fn number(formats: &[NumberFormat], name: &str) -> Option<(&'static str, FormatCheck)> {
    let found = formats.iter().find(|(known, _)| *known == name);
    found.map(|(name, check)| (*name, FormatCheck::Number(*check)))
}

/// Integers that are written with a point are checked as such before, so what matters is their worth.
const INTEGER_FORMATS: [NumberFormat; 2] = [
    ("int32", |number| {
        let bounds = f64::from(i32::MIN)..=f64::from(i32::MAX);
        number.as_f64().is_some_and(|it| bounds.contains(&it))
    }),
    ("int64", |_| true),
];

/// A number that is too large for a float of 32 bits; a small one is rounded.
const NUMBER_FORMATS: [NumberFormat; 2] = [
    ("double", |_| true),
    ("float", |number| {
        #[allow(clippy::cast_possible_truncation)] // the conversion is what is tried
        number.as_f64().is_some_and(|it| (it as f32).is_finite())
    }),
];

type TextCheck = fn(&str) -> bool;

const FORMATS: [(&str, TextCheck); 27] = [
    ("bsonobjectid", |text| text.len() == 24 && is_hex(text)),
    ("byte", is_base64),
    ("cidr", is_cidr),
    ("creditcard", is_credit_card),
    ("date", is_date),
    ("date-time", is_date_time),
    ("datetime", is_date_time),
    ("duration", is_duration),
    ("email", is_email),
    ("hexcolor", |text| HEX_COLOR.is_match(text)),
    ("hostname", is_hostname),
    ("ipv4", |text| text.contains('.') && address(text).is_some()),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8s-long-name", |text| dns_subdomain(text).is_empty()),
    ("k8s-short-name", |text| dns_label(text).is_empty()),
    ("mac", is_mac),
    ("password", |_| true),
    ("rgbcolor", |text| RGB_COLOR.is_match(text)),
    ("ssn", |text| SSN.is_match(text)),
    ("uri", is_uri),
    ("uuid", |text| UUID.is_match(text)),
    ("uuid3", |text| UUID3.is_match(text)),
    ("uuid4", |text| UUID4.is_match(text)),
    ("uuid5", |text| UUID5.is_match(text)),
];

/// A regular expression of this file: all are compiled in the tests.
#[allow(clippy::expect_used)] // a constant that a test compiles
fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant regular expression")
}

static HEX_COLOR: LazyLock<Regex> =
    LazyLock::new(|| compiled("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*";
    compiled(&format!(r"^rgb\({part},{part},{part}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| compiled(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static HOSTNAME_LABEL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^[a-zA-Z0-9\p{S}\p{L}]([a-zA-Z0-9\-\p{S}\p{L}]*[a-zA-Z0-9\p{S}\p{L}])?$")
});
static EMAIL: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"^([^\s<>"()]+@[^\s<>"()@]+|[^<>]*<[^\s<>()]+@[^\s<>()@]+>)$"#));
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})$")
});
static GO_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)";
    compiled(&format!("^[+-]?(0|({part})+)$"))
});
static DURATION_PART: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)"));

/// The units of durations, with their nanoseconds. What begins like the last name of one is that as well: `days`.
const DURATION_UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// Dashes may be left out; the version and the variant may be restricted.
fn uuid(version: &str, variant: &str) -> Regex {
    compiled(&format!(
        "(?i)^[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}[0-9a-f]{{3}}-?{variant}[0-9a-f]{{3}}-?[0-9a-f]{{12}}$"
    ))
}

static UUID: LazyLock<Regex> = LazyLock::new(|| uuid("[0-9a-f]", "[0-9a-f]"));
static UUID3: LazyLock<Regex> = LazyLock::new(|| uuid("3", "[0-9a-f]"));
static UUID4: LazyLock<Regex> = LazyLock::new(|| uuid("4", "[89ab]"));
static UUID5: LazyLock<Regex> = LazyLock::new(|| uuid("5", "[89ab]"));

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Groups of four, the last one filled up.
fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let filled = text.len() - data.len();
    let of_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && filled <= 2 && data.bytes().all(of_alphabet)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let Some(address) = self::address(address) else {
        return false;
    };
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    byte(bits).is_some_and(|bits| bits <= bits_max)
}

/// Returns an address, be it with leading zeros. Follows `ParseIPSloppy`.
fn address(text: &str) -> Option<IpAddr> {
    let (before, last) = text.rsplit_once(':').unwrap_or(("", text));
    if !last.contains('.') {
        return text.parse().ok();
    }
    let bytes = last.split('.').map(|part| Some(byte(part)?.to_string()));
    let plain = bytes.collect::<Option<Vec<String>>>()?.join(".");
    let separator = if last.len() < text.len() { ":" } else { "" };
    format!("{before}{separator}{plain}").parse().ok()
}

/// Returns the number that digits write, be it with leading zeros, if it is less than 256.
fn byte(digits: &str) -> Option<u8> {
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    let significant = digits.trim_start_matches('0');
    match significant {
        "" => is_number.then_some(0),
        _ => significant.parse().ok().filter(|_| is_number),
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['t', 'T']) else {
        return false;
    };
    is_date(date) && TIME.is_match(time)
}

/// A duration as Go reads it, or any text with a number and a unit in it. Follows `strfmt.ParseDuration`.
fn is_duration(text: &str) -> bool {
    GO_DURATION.is_match(text) || nanoseconds(text).is_some()
}

/// Returns the sum of all numbers with a unit in a text, which overflows as Go's does; `None` if there is none.
pub(super) fn nanoseconds(text: &str) -> Option<i64> {
    let mut sum = None;
    for part in DURATION_PART.captures_iter(text) {
        let number: i64 = part[1].parse().ok()?;
        let unit = part[2].to_lowercase();
        let found = DURATION_UNITS.iter().find(|(names, _)| {
            let begins = names.last().is_some_and(|last| unit.starts_with(last));
            begins || names.contains(&unit.as_str())
        });
        if let Some((_, each)) = found {
            let more = number.wrapping_mul(*each);
            sum = Some(sum.unwrap_or(0_i64).wrapping_add(more));
        }
    }
    sum
}

fn is_email(text: &str) -> bool {
    EMAIL.is_match(text)
}

/// Labels of at most 63 bytes; the last of several has two characters or more.
fn is_hostname(text: &str) -> bool {
    let labels: Vec<&str> = text.split('.').collect();
    let short_end = labels.len() > 1 && labels.last().is_some_and(|last| last.chars().count() < 2);
    let is_label = |label: &&str| label.len() <= 63 && HOSTNAME_LABEL.is_match(label);
    text.len() <= 255 && !short_end && labels.iter().all(is_label)
}

/// Six, eight or twenty bytes, in pairs between colons or dashes or in fours between points.
fn is_mac(text: &str) -> bool {
    let of = |separator: char, digits: usize, groups: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        let good = |part: &&str| part.len() == digits && is_hex(part);
        groups.contains(&parts.len()) && parts.iter().all(good)
    };
    of(':', 2, [6, 8, 20]) || of('-', 2, [6, 8, 20]) || of('.', 4, [3, 4, 10])
}

/// Absolute: with a scheme, or a path from the root. Follows `govalidator.IsRequestURI`.
fn is_uri(text: &str) -> bool {
    Url::parse_request(text).is_ok()
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| !b"- ".contains(byte)).collect();
    let mut sum = 0;
    for (place, byte) in digits.iter().enumerate() {
        let digit = match byte {
            b'0'..=b'9' => usize::from(byte - b'0'),
            b'X' if place == 9 => 10,
            _ => return false,
        };
        sum += (place + 1) * digit;
    }
    digits.len() == 10 && sum % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| !b"- ".contains(byte)).collect();
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighed = digits.iter().enumerate().map(|(place, byte)| {
        let digit = usize::from(byte - b'0');
        if place % 2 == 0 { digit } else { 3 * digit }
    });
    weighed.sum::<usize>() % 10 == 0
}

/// Twelve to nineteen digits with the check digit of Luhn.
fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
    if !(12..=19).contains(&digits.len()) {
        return false;
    }
    let weighed = digits.iter().rev().enumerate().map(|(place, byte)| {
        let digit = usize::from(byte - b'0') * (1 + place % 2);
        digit / 10 + digit % 10
    });
    weighed.sum::<usize>() % 10 == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_tell_good_strings_from_bad_ones() {
        for (name, good, bad) in [
            (
                "bsonobjectid",
                "507f1f77bcf86cd799439011",
                "507f1f77bcf86cd79943901",
            ),
            ("byte", "aGVsbG8=", "aGVsbG8"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("cidr", "fd00::/64", "fd00::"),
            ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
            ("date", "2026-02-28", "2026-02-30"),
            ("date-time", "2026-02-28T12:00:00Z", "2026-02-28 12:00:00Z"),
            (
                "date-time",
                "2026-02-28T23:59:59.5+01:00",
                "2026-02-28T24:00:00Z",
            ),
            ("datetime", "2026-02-28t12:00:00z", "2026-02-28"),
            ("duration", "1h30m", "1x"),
            ("duration", "3 days", "soon"),
            ("duration", "P1D", "P"),
            ("duration", "about 2 weeks", "99999999999999999999 days"),
            ("duration", "+0", "1"),
            ("email", "a@example.com", "example.com"),
            ("hexcolor", "#ff0080", "#ff008"),
            ("hostname", "a.example.com", "-a.example.com"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv4", "010.0.0.001", "10.0.0"),
            ("ipv4", "::ffff:10.0.0.01", "::1"),
            ("cidr", "010.0.0.0/08", "10.0.0.0/+8"),
            ("ipv6", "fd00::1", "10.0.0.1"),
            ("isbn", "978-3-16-148410-0", "978-3-16-148410-1"),
            ("isbn10", "0-306-40615-2", "0-306-40615-3"),
            ("isbn13", "9783161484100", "0306406152"),
            ("k8s-long-name", "a.b", "a..b"),
            ("k8s-short-name", "a-b", "a.b"),
            ("mac", "01:23:45:67:89:ab", "01:23:45:67:89"),
            ("rgbcolor", "rgb(0, 128, 255)", "rgb(0, 128, 256)"),
            ("ssn", "078-05-1120", "078-05-112"),
            ("uri", "https://example.com/a%20b", "example.com"),
            (
                "uuid",
                "d9428888-122b-11e1-b85c-61cd3cbb3210",
                "d9428888-122b-11e1-b85c",
            ),
            (
                "uuid",
                "d9428888122b11e1b85c61cd3cbb3210",
                "g9428888122b11e1b85c61cd3cbb3210",
            ),
            (
                "uuid4",
                "57b73598-8764-4ad0-a76a-679bb6640eb1",
                "57b73598-8764-1ad0-a76a-679bb6640eb1",
            ),
            (
                "uuid3",
                "d9428888-122b-31e1-b85c-61cd3cbb3210",
                "d9428888-122b-11e1-b85c-61cd3cbb3210",
            ),
            (
                "uuid5",
                "d9428888-122b-51e1-b85c-61cd3cbb3210",
                "d9428888-122b-51e1-c85c-61cd3cbb3210",
            ),
        ] {
            let format = Format::named(name, Some(JsonType::String)).unwrap();
            assert!(format.accepts(good), "{name} {good}");
            assert!(!format.accepts(bad), "{name} {bad}");
        }
    }

    #[test]
    fn formats_are_known_by_their_types_and_without_dashes() {
        let string = |name| Format::named(name, Some(JsonType::String));
        assert!(string("password").unwrap().accepts(""));
        assert!(string("int32").is_none());
        assert!(!string("k8sshortname").unwrap().accepts("a.b"));
        assert!(!string("ip-v4").unwrap().accepts("::1"));
    }

    #[test]
    fn formats_of_numbers_have_ranges() {
        for (kind, name, good, bad) in [
            (
                JsonType::Integer,
                "int32",
                json!(2_147_483_647),
                json!(2_147_483_648_i64),
            ),
            (
                JsonType::Integer,
                "int32",
                json!(-2_147_483_648),
                json!(-2_147_483_649_i64),
            ),
            (JsonType::Integer, "int32", json!(5.0), json!(-1e10)),
            (JsonType::Number, "float", json!(1e-50), json!(1e39)),
        ] {
            let format = Format::named(name, Some(kind)).unwrap();
            assert!(format.has(&good), "{name} {good}");
            assert!(!format.has(&bad), "{name} {bad}");
        }
        assert!(Format::named("int32", Some(JsonType::Number)).is_none());
        assert!(Format::named("float", Some(JsonType::Integer)).is_none());
        assert!(Format::named("date", Some(JsonType::Object)).is_none());
    }

    #[test]
    fn formats_that_say_nothing_are_found_wherever_they_are() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "format": "nonsense"},
            "b": {"type": "integer", "format": "int32"},
            "c": {"type": "array", "items": {"type": "number", "format": "int32"}},
            "d": {"type": "object", "format": "date", "additionalProperties": {
                "type": "string", "format": "date", "not": {"format": "no"}}},
            "e": {"x-kubernetes-int-or-string": true, "format": "uri", "anyOf": [{"format": "x"}]}}});
        assert_eq!(
            unrecognized_formats(&schema),
            ["nonsense", "int32", "date", "no", "x"]
        );
    }
}
