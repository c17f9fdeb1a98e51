//! Ranges of addresses, such as `10.0.0.0/24`.
//!
//! Follows `NewIPAllocator` of pkg/registry/core/service/ipallocator/ipallocator.go of Kubernetes 1.36.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rand::Rng as _;

use super::family::Family;
use crate::validation::values::network;

/// The fewest bits of the prefix of an IPv6 range out of which addresses are given.
const PREFIX_BITS_MIN_OF_IPV6: u8 = 64;

/// The addresses of a network. Services may have all but its own address, and with IPv4 that for broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The address of the network, whose bits after the prefix are 0.
    network: IpAddr,
    prefix_bits: u8,
}

impl Range {
    /// Parses a range; `None` if the text is something else. Bits after the prefix are dropped, and leading zeros
    /// allowed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix_bits) = network(text)?;
        let network = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix_bits));
                Ipv4Addr::from(u32::from(address) & mask.unwrap_or(0)).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix_bits));
                Ipv6Addr::from(u128::from(address) & mask.unwrap_or(0)).into()
            }
        };
        Some(Self {
            network,
            prefix_bits,
        })
    }

    /// Returns the family of the addresses.
    #[must_use]
    pub fn family(&self) -> Family {
        Family::of(self.network)
    }

    /// Returns the address of the network.
    #[must_use]
    pub fn network(&self) -> IpAddr {
        self.network
    }

    /// Returns the first address that a service may have.
    #[must_use]
    pub fn first(&self) -> IpAddr {
        self.nth(0)
    }

    /// Returns the number of addresses in the range, the network's own included; at most 2^64 - 1.
    #[must_use]
    pub fn size(&self) -> u64 {
        let all_bits = if self.network.is_ipv4() { 32 } else { 128 };
        1_u64
            .checked_shl(all_bits - u32::from(self.prefix_bits))
            .unwrap_or(u64::MAX)
    }

    /// Returns the length of the prefix.
    pub(crate) fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }

    /// Returns true if services may have any of the addresses.
    pub(crate) fn gives_addresses(&self) -> bool {
        self.count() > 0
    }

    /// Returns the number of addresses that services may have; 0 for an IPv6 range that is larger than Kubernetes
    /// allows.
    fn count(&self) -> u64 {
        match self.network {
            IpAddr::V4(_) => self.size().saturating_sub(2),
            IpAddr::V6(_) if self.prefix_bits < PREFIX_BITS_MIN_OF_IPV6 => 0,
            IpAddr::V6(_) => self.size().saturating_sub(1),
        }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let offset = match (address, self.network) {
            (IpAddr::V4(address), IpAddr::V4(network)) => {
                let offset = u32::from(address).checked_sub(network.into());
                offset.map(u128::from)
            }
            (IpAddr::V6(address), IpAddr::V6(network)) => {
                u128::from(address).checked_sub(network.into())
            }
            _ => None,
        };
        offset.is_some_and(|offset| (1..=u128::from(self.count())).contains(&offset))
    }

    /// Returns the address that is `offset` after the first that a service may have.
    fn nth(&self, offset: u64) -> IpAddr {
        match self.network {
            IpAddr::V4(network) => {
                let offset = u32::try_from(offset).unwrap_or(u32::MAX);
                let address = u32::from(network).wrapping_add(1).wrapping_add(offset);
                Ipv4Addr::from(address).into()
            }
            IpAddr::V6(network) => {
                let address = u128::from(network).wrapping_add(1 + u128::from(offset));
                Ipv6Addr::from(address).into()
            }
        }
    }

    /// Returns all addresses, in the order in which they are given away: the first are those that people ask for, so
    /// they come last, and each part begins anywhere.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let (range, count) = (*self, self.count());
        let last = asked_for(count, self.size(), 16, 256);
        shuffled(count, last).map(move |offset| range.nth(offset))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.network, self.prefix_bits)
    }
}

/// Returns how many of the first of `count` numbers are kept for those who ask for them: a part of the size of the
/// range, within limits.
pub(crate) fn asked_for(count: u64, size: u64, part: u64, most: u64) -> u64 {
    const LEAST: u64 = 16;
    if size <= LEAST {
        return 0;
    }
    (size / part).clamp(LEAST, most).min(count)
}

/// Returns the numbers below `count`, those below `last` after the others; each part begins anywhere.
pub(crate) fn shuffled(count: u64, last: u64) -> impl Iterator<Item = u64> {
    let part = |begin: u64, size: u64| {
        let start = rand::rng().random_range(0..size.max(1));
        let (first, rest) = (start..size, 0..start);
        first.chain(rest).map(move |step| begin + step)
    };
    part(last, count - last).chain(part(0, last))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn every_address_comes_once_and_the_first_come_last() {
        let range = Range::parse("10.0.0.7/24").expect("a range");
        assert_eq!(range.to_string(), "10.0.0.0/24");
        assert_eq!(range.first(), address("10.0.0.1"));
        let all: Vec<_> = range.candidates().collect();
        let last: BTreeSet<_> = all[238..].iter().copied().collect();
        let expected = (1..=16).map(|it| IpAddr::from([10, 0, 0, it]));
        assert_eq!(last, expected.collect());
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), 254);
        for (text, inside) in [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.0.255", false),
            ("::a00:1", false),
        ] {
            assert_eq!(range.contains(address(text)), inside, "{text}");
        }
    }

    #[test]
    fn ipv6_has_no_address_for_broadcasts() {
        let range = Range::parse("fd00:0:0:1::7/124").expect("a range");
        assert_eq!(range.to_string(), "fd00:0:0:1::/124");
        let all: BTreeSet<_> = range.candidates().collect();
        assert_eq!(all.len(), 15);
        assert_eq!(all.first(), Some(&address("fd00:0:0:1::1")));
        assert_eq!(all.last(), Some(&address("fd00:0:0:1::f")));
        assert!(range.contains(address("fd00:0:0:1::f")));
        assert!(!range.contains(address("fd00:0:0:1::10")));
        // One of 2^64 addresses is walked lazily, and one that is larger gives none.
        let large = Range::parse("fd00::/64").expect("a range");
        assert!(large.contains(large.candidates().next().expect("an address")));
        let larger = Range::parse("fd00::/63").expect("a range");
        assert_eq!(larger.candidates().next(), None);
    }

    #[test]
    fn ranges_of_any_size_are_read() {
        for (text, count) in [
            ("0.0.0.0/0", u64::from(u32::MAX) - 1),
            ("10.0.0.0/30", 2),
            ("10.0.0.0/31", 0),
            ("10.0.0.1/32", 0),
            ("010.0.0.0/30", 2),
            ("fd00::/108", (1 << 20) - 1),
            ("::/0", 0),
        ] {
            assert_eq!(
                Range::parse(text).map(|it| it.count()),
                Some(count),
                "{text}"
            );
        }
        for wrong in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "fd00::/129",
            "10.0.0/8",
            " 10.0.0.0/8",
        ] {
            assert_eq!(Range::parse(wrong), None, "{wrong}");
        }
    }
}
