//! The network of a client, by which limits count those who cannot be told apart.

use std::net::{IpAddr, Ipv4Addr};

/// An IPv4 address, or the /64 network of an IPv6 address, which is what one customer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// The address.
    V4(Ipv4Addr),
    /// The first 64 bits.
    V6(u64),
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_ipv6_are_one_network() {
        let network = |text: &str| Network::from(text.parse::<IpAddr>().expect("an address"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
        assert_ne!(network("10.0.0.2"), network("10.0.0.1"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:2"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
    }
}
