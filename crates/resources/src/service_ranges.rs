//! The ranges of cluster IPs that a server is started with: `--service-cluster-ip-range`.
//!
//! Follows `getServiceIPAndRanges` and `validateClusterIPFlags` of cmd/kube-apiserver/app/options of Kubernetes 1.36.

mod family;
mod range;

use std::net::IpAddr;

pub use self::family::{Families, Family};
pub use self::range::Range;
pub(crate) use self::range::{asked_for, shuffled};

/// The fewest addresses of the first range, its network's own included.
const SIZE_MIN: u64 = 8;
/// The range of a server that is started without one.
const DEFAULT: &str = "10.0.0.0/24";

/// The ranges of cluster IPs: one, or one of each family. The first has the default family of services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRanges {
    first: Range,
    second: Option<Range>,
}

impl ServiceRanges {
    /// Parses one or two ranges, separated by a comma. An empty text is the default.
    ///
    /// # Errors
    /// The explanation for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = if text.is_empty() { DEFAULT } else { text };
        let mut parts = text.split(',');
        let first = Range::parse(parts.next().unwrap_or_default())
            .ok_or("service-cluster-ip-range[0] is not a valid cidr")?;
        if first.size() < SIZE_MIN {
            return Err(format!(
                "error determining service IP ranges for primary service cidr: the service cluster IP range must be at \
                 least {SIZE_MIN} IP addresses"
            ));
        }
        let second = match parts.next() {
            Some(part) => {
                Some(Range::parse(part).ok_or("service-cluster-ip-range[1] is not an ip net")?)
            }
            None => None,
        };
        if parts.next().is_some() {
            return Err(
                "--service-cluster-ip-range must not contain more than two entries".to_owned(),
            );
        }
        if second.is_some_and(|second| second.family() == first.family()) {
            return Err(
                "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family"
                    .to_owned(),
            );
        }
        let mut all = [Some(first), second].into_iter().flatten();
        match all.find(|range| !range.gives_addresses()) {
            Some(range) => Err(format!(
                "shortest allowed prefix length for service CIDR is 64, got {}",
                range.prefix_bits()
            )),
            None => Ok(Self { first, second }),
        }
    }

    /// Returns the families of the addresses that services get.
    #[must_use]
    pub fn families(&self) -> Families {
        Families {
            first: self.first.family(),
            dual: self.second.is_some(),
        }
    }

    /// Returns the cluster IP of the Service `kubernetes`: the first that there is.
    #[must_use]
    pub fn api_address(&self) -> IpAddr {
        self.first.first()
    }

    /// Returns the range of the default family.
    #[must_use]
    pub fn first(&self) -> Range {
        self.first
    }

    /// Returns the ranges, as objects have them.
    pub(crate) fn cidrs(&self) -> Vec<String> {
        let all = [Some(self.first), self.second];
        all.iter().flatten().map(Range::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_or_one_of_each_family() {
        let ranges = ServiceRanges::parse("10.96.0.0/12").expect("a range");
        assert_eq!(ranges.api_address().to_string(), "10.96.0.1");
        assert!(!ranges.families().dual);
        let ranges = ServiceRanges::parse("fd00:1::1/108,10.96.0.7/16").expect("two ranges");
        assert_eq!(ranges.cidrs(), ["fd00:1::/108", "10.96.0.0/16"]);
        assert_eq!(ranges.api_address().to_string(), "fd00:1::1");
        let families = ranges.families();
        assert_eq!((families.first, families.dual), (Family::IPv6, true));
        let ranges = ServiceRanges::parse("").expect("the default");
        assert_eq!(ranges.cidrs(), ["10.0.0.0/24"]);
        for (wrong, words) in [
            (
                "10.0.0.0",
                "service-cluster-ip-range[0] is not a valid cidr",
            ),
            (" 10.0.0.0/8", "[0] is not a valid cidr"),
            ("10.0.0.0/30", "must be at least 8 IP addresses"),
            (
                "10.0.0.0/8,",
                "service-cluster-ip-range[1] is not an ip net",
            ),
            ("10.0.0.0/8,11.0.0.0/8", "must be of different IP family"),
            (
                "10.0.0.0/8,fd00::/108,fd01::/108",
                "--service-cluster-ip-range must not contain more than two entries",
            ),
            ("fd00::/48", "prefix length for service CIDR is 64, got 48"),
        ] {
            let error = ServiceRanges::parse(wrong).expect_err(wrong);
            assert!(error.contains(words), "{wrong}: {error}");
        }
    }
}
