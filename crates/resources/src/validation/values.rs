//! The formats of single values besides names and labels, with Kubernetes' error messages.

use std::net::IpAddr;

use ringwatch_apimachinery::quantity::{Amount, Quantity};
use ringwatch_apimachinery::validation::formats::{self, mismatch, name_too_long};

use super::field::{Errors, Field};

/// Maximum length of the name of a port, in bytes.
const PORT_NAME_BYTES_MAX: usize = 15;
/// Maximum length of a key of a ConfigMap, in bytes.
const CONFIG_KEY_BYTES_MAX: usize = 253;
/// The protocols of ports.
pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
/// The largest number of a port.
const PORT_MAX: i64 = 0xffff;
/// The largest id of a user or group.
const ID_MAX: i64 = i32::MAX as i64;

/// Returns the errors in the name of a port.
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = name_too_long(name, PORT_NAME_BYTES_MAX);
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(allowed) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !name.contains(|c: char| c.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".into());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".into());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".into());
    }
    wrong
}

/// Returns the errors in the name of an environment variable.
pub(crate) fn variable_name(name: &str) -> Vec<String> {
    let printable = |c: char| (c == ' ' || c.is_ascii_graphic()) && c != '=';
    if name.chars().all(printable) {
        return Vec::new();
    }
    vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".into()]
}

/// Returns the errors in a key of a ConfigMap or Secret.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    let mut wrong = name_too_long(key, CONFIG_KEY_BYTES_MAX);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if key.is_empty() || !key.bytes().all(allowed) {
        wrong.push(mismatch(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    wrong.extend(parent_folder(key));
    wrong
}

/// Returns the error in a name that leads out of a directory.
fn parent_folder(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("must not be '{name}'")),
        _ if name.starts_with("..") => Some("must not start with '..'".into()),
        _ => None,
    }
}

/// Returns the errors in the name of an HTTP header.
pub(crate) fn header_name(name: &str) -> Vec<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !name.is_empty() && name.bytes().all(allowed) {
        return Vec::new();
    }
    vec![mismatch(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// Returns the errors in a percentage.
pub(crate) fn percentage(text: &str) -> Vec<String> {
    let number = text.strip_suffix('%').unwrap_or_default();
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    vec![mismatch(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// Returns the errors in an IP address, which need not be in the canonical form. Other programs read one with leading
/// zeros, or one of IPv4 written as one of IPv6, as another address. Follows `IsValidIPForLegacyField` in
/// apimachinery's pkg/util/validation.
pub(crate) fn ip(text: &str) -> Vec<String> {
    let why = match (address(text), text.parse()) {
        (None, _) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        (_, Err(_)) => "must not have leading 0s",
        (_, Ok(ip)) if is_mapped(ip) => "must not be an IPv4-mapped IPv6 address",
        _ => return Vec::new(),
    };
    vec![why.to_owned()]
}

/// Returns the errors in an IP address that must be written in the canonical form. Follows `IsValidIP` in
/// apimachinery's pkg/util/validation.
pub(crate) fn canonical_ip(text: &str) -> Vec<String> {
    let canonical = address(text).map(|it| it.to_string());
    let wrong = ip(text);
    match canonical.filter(|it| it != text) {
        Some(canonical) if wrong.is_empty() => {
            vec![format!("must be in canonical form ({canonical:?})")]
        }
        _ => wrong,
    }
}

/// Returns true if an address of IPv4 is written as one of IPv6.
pub(super) fn is_mapped(ip: IpAddr) -> bool {
    ip != ip.to_canonical()
}

/// Returns an address, be it with leading zeros, as Kubernetes reads it for the sake of old objects. One of IPv4 that
/// is written as one of IPv6 (`::ffff:127.0.0.1`) is one of IPv4, as to Go.
pub(crate) fn address(text: &str) -> Option<IpAddr> {
    written_address(text).map(|it| it.to_canonical())
}

/// Returns true if addresses of both families are among these. The error is about the first that is none. Follows
/// `IsDualStackIPStrings` in k8s.io/utils/net.
pub(crate) fn has_both_families(addresses: &[&str]) -> Result<bool, String> {
    let mut found = [false; 2];
    for (index, text) in addresses.iter().enumerate() {
        let ip = address(text).ok_or_else(|| format!("invalid IP[{index}]: {text}"))?;
        found[usize::from(ip.is_ipv6())] = true;
    }
    Ok(found == [true; 2])
}

/// Returns an address of the family in which it is written.
fn written_address(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok();
    }
    let trimmed: Vec<&str> = text
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            rest => rest,
        })
        .collect();
    trimmed.join(".").parse().ok()
}

/// Returns the errors in a CIDR, which need not be in the canonical form. Follows `IsValidCIDRForLegacyField` in
/// apimachinery's pkg/util/validation.
pub(crate) fn cidr(text: &str) -> Vec<String> {
    let why = match network(text) {
        None => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        Some(_) if has_leading_zeros(text) => "must not have leading 0s in IP or prefix length",
        Some((ip, _)) if is_mapped(ip) => "must not have an IPv4-mapped IPv6 address",
        Some((first, bits)) if has_bits_beyond(first, bits) => {
            "must not have bits set beyond the prefix length"
        }
        _ => return Vec::new(),
    };
    vec![why.to_owned()]
}

/// Returns the errors in a CIDR that must be written in the canonical form. Follows `IsValidCIDR` in apimachinery's
/// pkg/util/validation.
pub(crate) fn canonical_cidr(text: &str) -> Vec<String> {
    let canonical = network(text).map(|(first, bits)| format!("{first}/{bits}"));
    let wrong = cidr(text);
    match canonical.filter(|it| it != text) {
        Some(canonical) if wrong.is_empty() => {
            vec![format!("must be in canonical form ({canonical:?})")]
        }
        _ => wrong,
    }
}

pub(super) fn has_leading_zeros(cidr: &str) -> bool {
    let (first, bits) = cidr.split_once('/').unwrap_or_default();
    first.parse::<IpAddr>().is_err() || bits.len() > 1 && bits.starts_with('0')
}

pub(super) fn has_bits_beyond(first: IpAddr, bits: u8) -> bool {
    let left_aligned = match first {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let rest = left_aligned.checked_shl(u32::from(bits));
    rest.is_some_and(|rest| rest != 0)
}

/// Returns the first address of a CIDR, and the length of its prefix.
pub(crate) fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (first, bits) = text.split_once('/')?;
    let first = written_address(first)?;
    let most = if first.is_ipv4() { 32 } else { 128 };
    let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    let bits: u8 = bits.parse().ok().filter(|bits| digits && *bits <= most)?;
    Some((first, bits))
}

/// Checks that an address is not unspecified, loopback, link-local or link-local multicast.
pub(crate) fn ordinary_address(at: &Field<'_, '_>, errors: &mut Errors) {
    let text = at.text();
    let Some(ip) = address(text) else {
        errors.push(at.invalid("must be a valid IP address"));
        return;
    };
    let (link_local, local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (
            ip.is_unicast_link_local(),
            ip.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    if ip.is_unspecified() {
        errors.push(at.invalid(format!("may not be unspecified ({text})")));
    }
    if ip.is_loopback() {
        errors.push(at.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if link_local {
        errors.push(at.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if local_multicast {
        errors.push(
            at.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        );
    }
}

/// Returns the errors in a path that must not contain `..`.
pub(crate) fn no_backsteps(path: &str) -> Vec<String> {
    if path.split('/').any(|step| step == "..") {
        vec!["must not contain '..'".into()]
    } else {
        Vec::new()
    }
}

/// Returns the errors in a relative path that must not contain `..`.
pub(crate) fn below(path: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if path.starts_with('/') {
        wrong.push("must be a relative path".into());
    }
    wrong.extend(no_backsteps(path));
    wrong
}

/// Checks a name of the form domain/path. Follows `IsDomainPrefixedPath` in apimachinery's pkg/util/validation.
pub(crate) fn domain_prefixed_path(at: &Field<'_, '_>, errors: &mut Errors) {
    const PATH_FORM: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    let is_path_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || br"/\-._~%!$&'()*+,;=:".contains(&byte);
    match at.text().split_once('/') {
        _ if at.is_empty() => errors.push(at.required("")),
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            let wrong = formats::dns_subdomain(domain).into_iter();
            errors.extend(wrong.map(|why| at.invalid_value(domain, why)));
            if !path.bytes().all(is_path_byte) {
                let why = format!("Invalid path (regex used for validation is '{PATH_FORM}')");
                errors.push(at.invalid_value(path, why));
            }
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(at.invalid(why));
        }
    }
}

/// The checks of numbers and quantities.
impl Field<'_, '_> {
    /// Adds an error unless the value is a port number, 1 to 65535.
    pub(crate) fn must_be_a_port(&self, errors: &mut Errors) {
        let number = self.number().unwrap_or(0);
        if !(1..=PORT_MAX).contains(&number) {
            errors.push(self.invalid_value(number, "must be between 1 and 65535, inclusive"));
        }
    }

    /// Adds an error unless the value is a port number or has the syntax of a port's name.
    pub(crate) fn must_be_a_port_or_its_name(&self, errors: &mut Errors) {
        if self.value().is_string() {
            self.must_conform(port_name, errors);
        } else {
            self.must_be_a_port(errors);
        }
    }

    /// Adds an error if the number is set and out of the range of ids of users and groups. Follows `IsValidUserID` and
    /// `IsValidGroupID` in apimachinery's pkg/util/validation.
    pub(crate) fn may_be_an_id(&self, errors: &mut Errors) {
        self.must_be_between(0, ID_MAX, errors);
    }

    /// Adds an error if the value is a negative number, or a text that is no percentage.
    pub(crate) fn must_be_a_count_or_percentage(&self, errors: &mut Errors) {
        if self.value().is_string() {
            self.must_conform(percentage, errors);
        } else {
            self.must_not_be_negative(errors);
        }
    }

    /// Returns the quantity here, if it is one.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        self.quantity_text().parse().ok()
    }

    /// Returns the quantity as it is written.
    pub(crate) fn quantity_text(&self) -> String {
        let number = self.value().as_number().map(ToString::to_string);
        number.unwrap_or_else(|| self.text().to_owned())
    }

    /// Returns the quantity in its canonical form; as it is written if it is none.
    pub(crate) fn canonical_quantity(&self) -> String {
        let text = self.quantity_text();
        let amount = text.parse::<Amount>().ok();
        amount.map_or(text, |amount| amount.to_string())
    }

    /// Adds an error if the value is a negative quantity.
    pub(crate) fn must_not_be_a_negative_quantity(&self, errors: &mut Errors) {
        if self.quantity().is_some_and(Quantity::is_negative) {
            errors.push(self.invalid("must be greater than or equal to 0"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_know_right_from_wrong() {
        type Format = fn(&str) -> Vec<String>;
        let cases: [(Format, &[&str], &[&str]); 8] = [
            (
                port_name,
                &["http", "a-1"],
                &["", "80", "a--b", "-a", "HTTP", "a-very-long-name"],
            ),
            (variable_name, &["A.b-C", "1 2"], &["A=B", "é", "a\tb"]),
            (config_key, &["a.b", "_"], &["", ".", "..", "..a", "a/b"]),
            (header_name, &["X-A1"], &["", "X A", "X_A"]),
            (percentage, &["0%", "150%"], &["", "%", "-1%", "1.5%", "25"]),
            (
                ip,
                &["10.0.0.1", "::1", "FD00:0::01"],
                &[
                    "",
                    "10.0.0",
                    "1.2.3.256",
                    "x",
                    "10.0.0.01",
                    "::ffff:10.0.0.1",
                ],
            ),
            (
                cidr,
                &[
                    "10.0.0.0/8",
                    "fd00::/64",
                    "0.0.0.0/0",
                    "10.0.0.1/32",
                    "FD00:0::/64",
                ],
                &[
                    "10.0.0.0",
                    "10.0.0.0/33",
                    "10.0.0.0/+8",
                    "x/8",
                    "010.0.0.0/8",
                    "10.0.0.0/08",
                    "10.0.0.1/8",
                    "fd00::1/64",
                    "::ffff:10.0.0.0/104",
                    "10.0.0.1/0",
                ],
            ),
            (below, &["a/b", "..a"], &["/a", "a/../b", ".."]),
        ];
        for (format, right, wrong) in cases {
            for text in right {
                assert_eq!(format(text), [""; 0], "{text}");
            }
            for text in wrong {
                assert_ne!(format(text), [""; 0], "{text}");
            }
        }
    }

    #[test]
    fn addresses_that_programs_read_in_different_ways_are_told() {
        for (format, text, wrong) in [
            (
                ip as fn(&str) -> Vec<String>,
                "010.0.0.1",
                "must not have leading 0s",
            ),
            (
                ip,
                "::ffff:1.2.3.4",
                "must not be an IPv4-mapped IPv6 address",
            ),
            (
                canonical_ip,
                "FD00::1",
                "must be in canonical form (\"fd00::1\")",
            ),
            (
                cidr,
                "10.0.0.0/08",
                "must not have leading 0s in IP or prefix length",
            ),
            (
                cidr,
                "::ffff:10.0.0.0/104",
                "must not have an IPv4-mapped IPv6 address",
            ),
            (
                cidr,
                "10.0.0.1/8",
                "must not have bits set beyond the prefix length",
            ),
            (
                canonical_cidr,
                "10.0.0.1/8",
                "must not have bits set beyond the prefix length",
            ),
            (
                canonical_cidr,
                "FD00::/8",
                "must be in canonical form (\"fd00::/8\")",
            ),
        ] {
            assert_eq!(format(text), [wrong], "{text}");
        }
    }

    #[test]
    fn addresses_for_one_node_alone_are_refused() {
        let wrong = |text: &str| {
            let value = json!(text);
            let mut errors = Vec::new();
            ordinary_address(&Field::root(&value), &mut errors);
            errors.len()
        };
        assert_eq!(wrong("10.1.2.3"), 0);
        for special in [
            "0.0.0.0",
            "127.0.0.1",
            "169.254.1.1",
            "224.0.0.9",
            "fe80::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "x",
        ] {
            assert_eq!(wrong(special), 1, "{special}");
        }
    }
}
