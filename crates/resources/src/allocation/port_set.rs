//! The set of allocated node ports, as Kubernetes stores it: the bits of one large number.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::range::{asked_for, shuffled};

/// The first port of the nodes that services may have.
const FIRST: u16 = 30_000;
/// The number of ports in the range.
const COUNT: u16 = 2768;

/// The ports that are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PortSet(pub(super) BTreeSet<u16>);

impl PortSet {
    /// Returns the range as the object of allocated ports has it.
    pub(super) fn range() -> String {
        format!("{FIRST}-{}", FIRST + COUNT - 1)
    }

    pub(super) fn may_have(port: u16) -> bool {
        (FIRST..FIRST + COUNT).contains(&port)
    }

    /// Reads the number: its last byte has the first eight ports.
    pub(super) fn decode(data: &str) -> Option<Self> {
        let bytes = STANDARD.decode(data).ok()?;
        let bytes = bytes.iter().rev().take(usize::from(COUNT).div_ceil(8));
        let bits = bytes.flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
        let ports = (FIRST..FIRST + COUNT).zip(bits);
        Some(Self(
            ports
                .filter_map(|(port, taken)| taken.then_some(port))
                .collect(),
        ))
    }

    pub(super) fn encode(&self) -> String {
        let offsets = || self.0.iter().map(|port| usize::from(port - FIRST));
        let mut bytes = vec![0_u8; offsets().max().map_or(0, |most| most / 8 + 1)];
        for offset in offsets() {
            bytes[offset / 8] |= 1 << (offset % 8);
        }
        bytes.reverse();
        STANDARD.encode(bytes)
    }

    /// Takes a port; false if it is taken.
    pub(super) fn take(&mut self, port: u16) -> bool {
        self.0.insert(port)
    }

    /// Takes any free port; `None` if there is none.
    pub(super) fn take_any(&mut self) -> Option<u16> {
        let count = u32::from(COUNT);
        let free = shuffled(count, asked_for(count, 32, 128))
            .filter_map(|offset| u16::try_from(offset).ok())
            .map(|offset| FIRST + offset)
            .find(|port| !self.0.contains(port))?;
        self.0.insert(free);
        Some(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_bits_of_one_number() {
        let set = |ports: &[u16]| PortSet(ports.iter().copied().collect());
        for (ports, data) in [
            (vec![], ""),
            (vec![30_000], "AQ=="),
            (vec![30_009], "AgA="),
            (vec![30_000, 30_001, 30_015], "gAM="),
        ] {
            assert_eq!(set(&ports).encode(), data);
            assert_eq!(PortSet::decode(data), Some(set(&ports)));
        }
        let all: Vec<u16> = (FIRST..FIRST + COUNT).collect();
        assert_eq!(PortSet::decode(&set(&all).encode()), Some(set(&all)));
        assert_eq!(PortSet::decode("!"), None);
        assert_eq!(PortSet::range(), "30000-32767");
    }

    #[test]
    fn every_port_is_given_away_once() {
        let mut set = PortSet::default();
        let first: BTreeSet<_> = (0..COUNT - 86).filter_map(|_| set.take_any()).collect();
        assert_eq!(
            first.first(),
            Some(&30_086),
            "those before it are asked for"
        );
        let rest: BTreeSet<_> = (0..86).filter_map(|_| set.take_any()).collect();
        assert_eq!(rest.len() + first.len(), usize::from(COUNT));
        assert_eq!(set.take_any(), None);
        assert!(!set.take(31_000));
    }
}
