//! The families of IP addresses, and those that the services of a cluster have.

use std::net::IpAddr;

use serde_json::Value;

/// A family of IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IP version 4.
    IPv4,
    /// IP version 6.
    IPv6,
}

impl Family {
    /// Returns the family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::IPv4
        } else {
            Self::IPv6
        }
    }

    /// Returns the name that objects have for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IPv4 => "IPv4",
            Self::IPv6 => "IPv6",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::IPv4 => Self::IPv6,
            Self::IPv6 => Self::IPv4,
        }
    }

    pub(crate) fn parse(name: &Value) -> Option<Self> {
        [Self::IPv4, Self::IPv6]
            .into_iter()
            .find(|it| name == it.name())
    }
}

/// The families of the addresses that services get: one, or both in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Families {
    /// The family of services that name none.
    pub first: Family,
    /// True if services can have addresses of both families.
    pub dual: bool,
}

impl Default for Families {
    fn default() -> Self {
        Self {
            first: Family::IPv4,
            dual: false,
        }
    }
}

impl Families {
    /// Returns true if services can have addresses of this family.
    pub(crate) fn has(self, family: Family) -> bool {
        self.dual || family == self.first
    }
}
