//! Warnings about IP addresses and CIDRs that Kubernetes still accepts, but that are not in their canonical form, which
//! other programs may read in another way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::field::Field;
use super::values::{address, has_bits_beyond, has_leading_zeros, is_mapped, network};

/// Adds the warning about an address that was found valid, be it by the rules of old fields. Follows
/// `GetWarningsForIP`.
pub(crate) fn ip(at: &Field<'_, '_>, warnings: &mut Vec<String>) {
    ip_at(at.text(), &at.field(), warnings);
}

/// Adds the warning about an address that is told to be at `field`.
pub(crate) fn ip_at(text: &str, field: &str, warnings: &mut Vec<String>) {
    let Some(canonical) = address(text) else {
        return;
    };
    match text.parse::<IpAddr>() {
        Ok(written) if !is_mapped(written) => {
            if written.is_ipv6() && canonical.to_string() != text {
                warnings.push(format!(
                    "{field}: IPv6 address {text:?} should be in RFC 5952 canonical format (\"{canonical}\")"
                ));
            }
        }
        _ => warnings.push(format!(
            "{field}: non-standard IP address {text:?} is invalid: use \"{canonical}\""
        )),
    }
}

/// Adds the warnings about a CIDR that was found valid, be it by the rules of old fields. Follows `GetWarningsForCIDR`.
pub(crate) fn cidr(at: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let text = at.text();
    let Some((written, bits)) = network(text) else {
        return;
    };
    let mapped = is_mapped(written);
    // Of IPv4 within IPv6, Go keeps the last 32 bits, and of the prefix what is in them.
    let (whole, bits) = match (written.to_canonical(), written.is_ipv6()) {
        (IpAddr::V4(ip), true) => (IpAddr::V4(ip), bits.saturating_sub(96)),
        (ip, _) => (ip, bits),
    };
    let field = at.field();
    let first = masked(whole, bits);
    let count = warnings.len();
    if has_bits_beyond(whole, bits) {
        let most = if whole.is_ipv4() { 32 } else { 128 };
        warnings.push(format!(
            "{field}: CIDR value {text:?} is ambiguous in this context (should be \"{first}/{bits}\" or \"{whole}/{most}\"?)"
        ));
    }
    if mapped || has_leading_zeros(text) {
        warnings.push(format!(
            "{field}: non-standard CIDR value {text:?} is invalid: use \"{first}/{bits}\""
        ));
    }
    let canonical = format!("{whole}/{bits}");
    if warnings.len() == count && whole.is_ipv6() && canonical != text {
        warnings.push(format!(
            "{field}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format ({canonical:?})"
        ));
    }
}

/// Returns the first address of a prefix.
fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or_default();
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or_default();
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn warnings_of(warn: fn(&Field<'_, '_>, &mut Vec<String>), text: &str) -> Vec<String> {
        let object = json!({"a": text});
        let mut warnings = Vec::new();
        warn(&Field::root(&object).at("a"), &mut warnings);
        warnings
    }

    #[test]
    fn addresses_that_are_not_canonical_are_told() {
        for right in ["fd00::1", "10.0.0.1", "None", ""] {
            assert!(warnings_of(ip, right).is_empty(), "{right}");
        }
        for (text, told) in [
            (
                "2001:DB8::1",
                r#"a: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#,
            ),
            (
                "fd00:0:0:0:0:0:0:1",
                r#"a: IPv6 address "fd00:0:0:0:0:0:0:1" should be in RFC 5952 canonical format ("fd00::1")"#,
            ),
            (
                "::ffff:1.2.3.4",
                r#"a: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4""#,
            ),
            (
                "010.0.0.1",
                r#"a: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1""#,
            ),
        ] {
            assert_eq!(warnings_of(ip, text), [told]);
        }
    }

    #[test]
    fn networks_that_are_not_canonical_are_told() {
        for right in ["fd00::/64", "10.0.0.0/8", "::/0", "0.0.0.0/0", "x"] {
            assert!(warnings_of(cidr, right).is_empty(), "{right}");
        }
        let ambiguous = |text: &str, first: &str, whole: &str| {
            format!(
                "a: CIDR value {text:?} is ambiguous in this context (should be {first:?} or {whole:?}?)"
            )
        };
        let invalid = |text: &str, first: &str| {
            format!("a: non-standard CIDR value {text:?} is invalid: use {first:?}")
        };
        for (text, told) in [
            ("10.0.0.1/8", vec![ambiguous("10.0.0.1/8", "10.0.0.0/8", "10.0.0.1/32")]),
            ("FD00::1/64", vec![ambiguous("FD00::1/64", "fd00::/64", "fd00::1/128")]),
            ("010.0.0.0/8", vec![invalid("010.0.0.0/8", "10.0.0.0/8")]),
            ("10.0.0.0/08", vec![invalid("10.0.0.0/08", "10.0.0.0/8")]),
            ("::ffff:10.0.0.0/104", vec![invalid("::ffff:10.0.0.0/104", "10.0.0.0/8")]),
            (
                "FD00::/64",
                vec![r#"a: IPv6 CIDR value "FD00::/64" should be in RFC 5952 canonical format ("fd00::/64")"#.to_owned()],
            ),
        ] {
            assert_eq!(warnings_of(cidr, text), told);
        }
    }
}
