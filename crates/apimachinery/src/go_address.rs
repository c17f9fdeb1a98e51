//! Addresses and prefixes of networks as Go's `net/netip` reads them, with its words about what is wrong.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::go_text::quoted;

/// Number of groups of 16 bits in an IPv6 address.
const GROUPS: usize = 8;

/// An address, and the zone in which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address without zone.
    pub ip: IpAddr,
    /// The zone of an IPv6 address; empty if it has none.
    pub zone: String,
}

/// The reason why a text is no address, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ParseAddr({}): {why}{}", quoted(.text), place(.at))]
pub struct AddressError {
    text: String,
    why: &'static str,
    /// The text from where it is wrong on; empty if that is not told.
    at: String,
}

fn place(at: &str) -> String {
    if at.is_empty() {
        return String::new();
    }
    format!(" (at {})", quoted(at))
}

/// The reason why a part of an address is wrong, and the text from there on.
type Wrong<'t> = (&'static str, &'t str);

impl Address {
    /// Reads an address. Follows `netip.ParseAddr`.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        parse(text).map_err(|(why, at)| AddressError {
            text: text.to_owned(),
            why,
            at: at.to_owned(),
        })
    }
}

fn parse(text: &str) -> Result<Address, Wrong<'_>> {
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => Ok(Address {
            ip: parse_v4(text)?.into(),
            zone: String::new(),
        }),
        Some(b':') => {
            let (address, zone) = text.split_once('%').unwrap_or((text, "-"));
            if zone.is_empty() {
                return Err(("zone must be a non-empty string", ""));
            }
            let zone = if address == text { "" } else { zone };
            Ok(Address {
                ip: parse_v6(address)?.into(),
                zone: zone.to_owned(),
            })
        }
        Some(_) => Err(("missing IPv6 address", "")),
        None => Err(("unable to parse IP", "")),
    }
}

/// Reads an IPv4 address. Follows `parseIPv4Fields`.
fn parse_v4(text: &str) -> Result<Ipv4Addr, Wrong<'_>> {
    let mut fields = Vec::with_capacity(4);
    let mut field: Option<u8> = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' if field == Some(0) => {
                return Err(("IPv4 field has octet with leading zero", ""));
            }
            b'0'..=b'9' => {
                let tens = field.unwrap_or(0).checked_mul(10);
                let next = tens.and_then(|it| it.checked_add(byte - b'0'));
                field = Some(next.ok_or(("IPv4 field has value >255", ""))?);
            }
            b'.' => match field.take().filter(|_| at + 1 < text.len()) {
                None => return Err(("IPv4 field must have at least one digit", &text[at..])),
                Some(_) if fields.len() == 3 => return Err(("IPv4 address too long", "")),
                Some(field) => fields.push(field),
            },
            _ => return Err(("unexpected character", &text[at..])),
        }
    }
    fields.extend(field);
    let fields = <[u8; 4]>::try_from(fields).map_err(|_| ("IPv4 address too short", ""))?;
    Ok(fields.into())
}

/// Reads an IPv6 address without zone. Follows `parseIPv6`.
fn parse_v6(text: &str) -> Result<Ipv6Addr, Wrong<'_>> {
    let mut groups: Vec<u16> = Vec::with_capacity(GROUPS);
    let mut gap = None;
    let mut rest = text;
    if let Some(after) = text.strip_prefix("::") {
        gap = Some(0);
        rest = after;
    }
    while groups.len() < GROUPS && !(rest.is_empty() && gap == Some(groups.len())) {
        let end = rest.find(|it: char| !it.is_ascii_hexdigit());
        let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
        if digits.len() > 4 {
            return Err(("each group must have 4 or less digits", rest));
        }
        let Ok(group) = u16::from_str_radix(digits, 16) else {
            let why = "each colon-separated field must have at least one digit";
            return Err((why, rest));
        };
        if after.starts_with('.') {
            if gap.is_none() && groups.len() != GROUPS - 2 {
                let why = "embedded IPv4 address must replace the final 2 fields of the address";
                return Err((why, rest));
            }
            if groups.len() > GROUPS - 2 {
                let why = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err((why, rest));
            }
            let [a, b, c, d] = parse_v4(rest)?.octets();
            groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            rest = "";
            break;
        }
        groups.push(group);
        rest = after;
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(("multiple :: in address", rest));
            }
            gap = Some(groups.len());
            rest = after;
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match gap {
        None if groups.len() < GROUPS => return Err(("address string too short", "")),
        Some(_) if groups.len() == GROUPS => {
            return Err(("the :: must expand to at least one field of zeros", ""));
        }
        Some(at) => {
            let zeros = vec![0; GROUPS - groups.len()];
            groups.splice(at..at, zeros);
        }
        None => {}
    }
    let groups = <[u16; GROUPS]>::try_from(groups).map_err(|_| ("address string too short", ""))?;
    Ok(groups.into())
}

/// The reason why a text is no prefix of a network, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netip.ParsePrefix({}): {why}", quoted(.text))]
pub struct PrefixError {
    text: String,
    why: String,
}

/// Reads the prefix of a network, and returns its address and its length. Follows `netip.ParsePrefix`.
///
/// # Errors
/// [`PrefixError`] says what is wrong with the text.
pub fn parse_prefix(text: &str) -> Result<(IpAddr, u8), PrefixError> {
    prefix(text).map_err(|why| PrefixError {
        text: text.to_owned(),
        why,
    })
}

fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, length) = text.rsplit_once('/').ok_or("no '/'")?;
    let address = Address::parse(address).map_err(|error| error.to_string())?;
    if !address.zone.is_empty() {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let is_plain = length.len() == 1 || length.starts_with(|it: char| ('1'..='9').contains(&it));
    let bits = length.parse::<i64>().ok().filter(|_| is_plain);
    let bits = bits.ok_or_else(|| format!("bad bits after slash: {}", quoted(length)))?;
    let bits_max = if address.ip.is_ipv4() { 32 } else { 128 };
    let bits = u8::try_from(bits).ok().filter(|bits| *bits <= bits_max);
    Ok((address.ip, bits.ok_or("prefix length out of range")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts, each with the address that Go reads, or what it says is wrong with it.
    #[rustfmt::skip]
    const ADDRESSES: &[(&str, Result<&str, &str>)] = &[
        ("", Err("unable to parse IP")),
        ("x", Err("unable to parse IP")),
        ("1.2.3", Err("IPv4 address too short")),
        ("1.2.3.4.5", Err("IPv4 address too long")),
        ("01.2.3.4", Err("IPv4 field has octet with leading zero")),
        ("1.2.3.256", Err("IPv4 field has value >255")),
        ("1..2.3", Err("IPv4 field must have at least one digit (at \".2.3\")")),
        ("1.2.3.", Err("IPv4 field must have at least one digit (at \".\")")),
        ("1.2.3.x", Err("unexpected character (at \"x\")")),
        (".1.2.3", Err("IPv4 field must have at least one digit (at \".1.2.3\")")),
        ("%eth0", Err("missing IPv6 address")),
        ("::1%", Err("zone must be a non-empty string")),
        ("fe80::1%eth0", Ok("fe80::1%eth0")),
        ("::%e", Ok("::%e")),
        ("::ffff:1.2.3.4", Ok("::ffff:1.2.3.4")),
        ("12345::", Err("each group must have 4 or less digits (at \"12345::\")")),
        ("::g", Err("each colon-separated field must have at least one digit (at \"g\")")),
        (":1", Err("each colon-separated field must have at least one digit (at \":1\")")),
        ("1:", Err("colon must be followed by more characters (at \":\")")),
        ("1:2", Err("address string too short")),
        ("1:2:3:4:5:6:7:8:9", Err("trailing garbage after address (at \"9\")")),
        ("1:2:3:4::5:6:7:8", Err("the :: must expand to at least one field of zeros")),
        ("1::2::3", Err("multiple :: in address (at \":3\")")),
        (":::1", Err("each colon-separated field must have at least one digit (at \":1\")")),
        ("1:2:3.4.5.6", Err("embedded IPv4 address must replace the final 2 fields of the address (at \"3.4.5.6\")")),
        ("1:2:3:4:5:6:7:1.2.3.4", Err("embedded IPv4 address must replace the final 2 fields of the address (at \"1.2.3.4\")")),
        ("::1.2.3", Err("IPv4 address too short")),
        ("::1.2.3.4%e", Ok("::102:304%e")),
        ("::01.2.3.4", Err("IPv4 field has octet with leading zero")),
        ("1:2:3:4:5:6:1.2.3.4", Ok("1:2:3:4:5:6:102:304")),
        ("1:2 ", Err("unexpected character, want colon (at \" \")")),
        ("é", Err("unable to parse IP")),
        ("1.é.3.4", Err("unexpected character (at \"é.3.4\")")),
        ("::é", Err("each colon-separated field must have at least one digit (at \"é\")")),
        ("1:2:3:4:5:6:7::", Ok("1:2:3:4:5:6:7:0")),
        ("::1:2:3:4:5:6:7:1.2.3.4", Err("too many hex fields to fit an embedded IPv4 at the end of the address (at \"1.2.3.4\")")),
        ("1::2:3:4:5:6:7:1.2.3.4", Err("too many hex fields to fit an embedded IPv4 at the end of the address (at \"1.2.3.4\")")),
        ("0.0.0.0", Ok("0.0.0.0")),
        ("00000::", Err("each group must have 4 or less digits (at \"00000::\")")),
    ];

    /// Texts, each with the prefix that Go reads, or what it says is wrong.
    #[rustfmt::skip]
    const PREFIXES: &[(&str, Result<&str, &str>)] = &[
        ("1.2.3.4", Err("no '/'")),
        ("1.2.3/8", Err("ParseAddr(\"1.2.3\"): IPv4 address too short")),
        ("::1%e/8", Err("IPv6 zones cannot be present in a prefix")),
        ("1.2.3.4/08", Err("bad bits after slash: \"08\"")),
        ("1.2.3.4/", Err("bad bits after slash: \"\"")),
        ("1.2.3.4/x", Err("bad bits after slash: \"x\"")),
        ("1.2.3.4/33", Err("prefix length out of range")),
        ("::/129", Err("prefix length out of range")),
        ("::/+1", Err("bad bits after slash: \"+1\"")),
        ("1.2.3.4/0", Ok("1.2.3.4/0")),
        ("::ffff:1.2.3.4/120", Ok("::ffff:1.2.3.4/120")),
        ("1.2.3.4/99999999999999999999", Err("bad bits after slash: \"99999999999999999999\"")),
        ("1.2.3.4/-1", Err("bad bits after slash: \"-1\"")),
        ("1.2.3.4/1/2", Err("ParseAddr(\"1.2.3.4/1\"): unexpected character (at \"/1\")")),
        ("1.2.3.4/é", Err("bad bits after slash: \"é\"")),
    ];

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        for (text, read) in ADDRESSES {
            let found = Address::parse(text).map(|it| match it.zone.as_str() {
                "" => it.ip.to_string(),
                zone => format!("{}%{zone}", it.ip),
            });
            let told = |why| format!("ParseAddr({}): {why}", quoted(text));
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found, read.map(str::to_owned).map_err(told), "{text}");
        }
    }

    #[test]
    fn prefixes_are_read_as_go_reads_them() {
        for (text, read) in PREFIXES {
            let found = parse_prefix(text).map(|(ip, bits)| format!("{ip}/{bits}"));
            let told = |why| format!("netip.ParsePrefix({}): {why}", quoted(text));
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found, read.map(str::to_owned).map_err(told), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn addresses_are_those_of_the_standard_library(text in "[0-9a-f:.]{0,20}|(0|1|f1|::|:|[.]){0,16}") {
            let found = Address::parse(&text).map(|it| it.ip).ok();
            proptest::prop_assert_eq!(found, text.parse().ok());
        }
    }
}
