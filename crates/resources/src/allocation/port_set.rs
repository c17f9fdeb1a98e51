//! The set of allocated node ports, as Kubernetes stores it: the bits of one large number.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::service_ranges::{asked_for, shuffled};

/// The ports of the nodes that services may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(RangeInclusive<u16>);

/// The ports that are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PortSet(pub(super) BTreeSet<u16>);

impl Default for PortRange {
    fn default() -> Self {
        Self(30_000..=32_767)
    }
}

impl PortRange {
    /// Parses `first-last`, `first+offset` of the last, or one port; an empty text is the default. Follows
    /// `PortRange.Set` of apimachinery's pkg/util/net of Kubernetes 1.36.
    ///
    /// # Errors
    /// The explanation for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let number = |text: &str| {
            text.parse::<u32>()
                .map_err(|error| format!("{text:?}: {error}"))
        };
        let (first, last) = match (text.split_once('-'), text.split_once('+')) {
            (Some(_), Some(_)) => return Err(format!("unable to parse port range: {text}")),
            (Some((first, last)), None) => (number(first)?, number(last)?),
            (None, Some((first, offset))) => {
                let first = number(first)?;
                (first, first.saturating_add(number(offset)?))
            }
            (None, None) => (number(text)?, number(text)?),
        };
        let port = |number: u32| {
            u16::try_from(number)
                .map_err(|_| format!("the port range cannot be greater than 65535: {text}"))
        };
        let (first, last) = (port(first)?, port(last)?);
        if last < first {
            return Err(format!("end port cannot be less than start port: {text}"));
        }
        Ok(Self(first..=last))
    }

    /// Returns true if services may have this port.
    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        self.0.contains(&port)
    }

    fn count(&self) -> u64 {
        u64::from(self.0.end() - self.0.start()) + 1
    }

    /// Reads the number: its last byte has the first eight ports.
    pub(super) fn decode(&self, data: &str) -> Option<PortSet> {
        let bytes = STANDARD.decode(data).ok()?;
        let bits = bytes
            .iter()
            .rev()
            .flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
        let ports = self.0.clone().zip(bits);
        let taken = ports.filter_map(|(port, taken)| taken.then_some(port));
        Some(PortSet(taken.collect()))
    }

    /// Writes ports, all of which are in this range, as a number.
    pub(super) fn encode(&self, ports: &PortSet) -> String {
        let offsets = || {
            let inside = ports.0.iter().filter(|port| self.contains(**port));
            inside.map(|port| usize::from(port - self.0.start()))
        };
        let mut bytes = vec![0_u8; offsets().max().map_or(0, |most| most / 8 + 1)];
        for offset in offsets() {
            bytes[offset / 8] |= 1 << (offset % 8);
        }
        bytes.reverse();
        STANDARD.encode(bytes)
    }

    /// Takes any free port; `None` if there is none.
    pub(super) fn take_any(&self, ports: &mut PortSet) -> Option<u16> {
        let count = self.count();
        let free = shuffled(count, asked_for(count, count, 32, 128))
            .filter_map(|offset| self.0.start().checked_add(u16::try_from(offset).ok()?))
            .find(|port| !ports.0.contains(port))?;
        ports.0.insert(free);
        Some(free)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.0.start(), self.0.end())
    }
}

impl PortSet {
    /// Takes a port; false if it is taken.
    pub(super) fn take(&mut self, port: u16) -> bool {
        self.0.insert(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_bits_of_one_number() {
        let range = PortRange::default();
        let set = |ports: &[u16]| PortSet(ports.iter().copied().collect());
        for (ports, data) in [
            (vec![], ""),
            (vec![30_000], "AQ=="),
            (vec![30_009], "AgA="),
            (vec![30_000, 30_001, 30_015], "gAM="),
        ] {
            assert_eq!(range.encode(&set(&ports)), data);
            assert_eq!(range.decode(data), Some(set(&ports)));
        }
        let all: Vec<u16> = range.0.clone().collect();
        assert_eq!(range.decode(&range.encode(&set(&all))), Some(set(&all)));
        assert_eq!(range.decode("!"), None);
        assert_eq!(range.to_string(), "30000-32767");
    }

    #[test]
    fn every_port_is_given_away_once() {
        let range = PortRange::default();
        let mut set = PortSet::default();
        let first: BTreeSet<_> = (0..2768 - 86)
            .filter_map(|_| range.take_any(&mut set))
            .collect();
        assert_eq!(
            first.first(),
            Some(&30_086),
            "those before it are asked for"
        );
        let rest: BTreeSet<_> = (0..86).filter_map(|_| range.take_any(&mut set)).collect();
        assert_eq!(rest.len() + first.len(), 2768);
        assert_eq!(range.take_any(&mut set), None);
        assert!(!set.take(31_000));
        let mut all = PortSet::default();
        let every = PortRange::parse("0-65535").expect("a range");
        assert_eq!(
            (0..=65_535)
                .filter_map(|_| every.take_any(&mut all))
                .count(),
            65_536
        );
    }

    #[test]
    fn ranges_are_written_in_three_ways() {
        let parsed = |text: &str| PortRange::parse(text).map(|it| it.to_string());
        for (text, expected) in [
            (" 30000-32767 ", "30000-32767"),
            ("8000+100", "8000-8100"),
            ("80", "80-80"),
            ("", "30000-32767"),
        ] {
            assert_eq!(parsed(text), Ok(expected.to_owned()), "{text}");
        }
        for (wrong, words) in [
            ("1-2+3", "unable to parse port range: 1-2+3"),
            ("30000-65536", "cannot be greater than 65535"),
            ("4294967295+1", "cannot be greater than 65535"),
            ("2-1", "end port cannot be less than start port: 2-1"),
            ("a-b", "invalid digit"),
            ("-5", "empty"),
        ] {
            let error = parsed(wrong).expect_err(wrong);
            assert!(error.contains(words), "{error}");
        }
    }
}
