//! A range of addresses, as `10.0.0.0/24`.

use std::net::Ipv4Addr;

use rand::Rng as _;

/// The addresses of a network that services may have: neither its own nor that for broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    network: u32,
    /// The number of addresses in the range.
    count: u32,
}

impl Range {
    /// Reads `10.0.0.0/24`; `None` if that is something else, such as a range of version 6.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32)?;
        let size = 1_u64 << (32 - bits);
        let network = u64::from(u32::from(address)) & !(size - 1);
        Some(Self {
            network: u32::try_from(network).ok()?,
            count: u32::try_from(size.saturating_sub(2)).ok()?,
        })
    }

    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).checked_sub(self.network);
        offset.is_some_and(|offset| (1..=self.count).contains(&offset))
    }

    pub(super) fn network(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.network)
    }

    /// Returns all addresses, in the order in which they are given away: the first are those that people ask for, so
    /// they come last, and each part begins anywhere.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        let (network, count) = (self.network, self.count);
        shuffled(count, asked_for(count, 16, 256))
            .map(move |offset| Ipv4Addr::from(network + 1 + offset))
    }
}

/// Returns how many of the first numbers of a range are kept for those who ask for them: a part of it, within limits.
pub(super) fn asked_for(count: u32, part: u32, most: u32) -> u32 {
    const LEAST: u32 = 16;
    if count < LEAST {
        return 0;
    }
    (count / part).clamp(LEAST, most)
}

/// Returns the numbers below `count`, those below `last` after the others; each part begins anywhere.
pub(super) fn shuffled(count: u32, last: u32) -> impl Iterator<Item = u32> {
    let part = |begin: u32, size: u32| {
        let start = rand::rng().random_range(0..size.max(1));
        (0..size).map(move |step| begin + (start + step) % size)
    };
    part(last, count - last).chain(part(0, last))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_address_comes_once_and_the_first_come_last() {
        let range = Range::parse("10.0.0.7/24").expect("a range");
        assert_eq!(range.network(), Ipv4Addr::new(10, 0, 0, 0));
        let all: Vec<_> = range.candidates().collect();
        let last: BTreeSet<_> = all[238..].iter().map(|it| it.octets()[3]).collect();
        assert_eq!(last, (1..=16).collect());
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), 254);
        for (address, inside) in [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.0.255", false),
        ] {
            assert_eq!(range.contains(address.parse().expect("an address")), inside);
        }
    }

    #[test]
    fn ranges_of_any_size_are_read() {
        for (text, count) in [
            ("0.0.0.0/0", u32::MAX - 1),
            ("10.0.0.0/30", 2),
            ("10.0.0.1/32", 0),
        ] {
            assert_eq!(Range::parse(text).map(|it| it.count), Some(count), "{text}");
        }
        for wrong in ["", "10.0.0.0", "10.0.0.0/33", "fd00::/108", "10.0.0/8"] {
            assert_eq!(Range::parse(wrong), None, "{wrong}");
        }
        assert_eq!(
            Range::parse("10.0.0.0/31")
                .expect("a range")
                .candidates()
                .count(),
            0
        );
    }
}
