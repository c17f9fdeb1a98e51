//! The addresses that clients may reach through this server.

use std::net::IpAddr;

/// Returns true if clients may reach an address through this server: not itself, its link-local neighbours, or
/// multicast groups. Users who write pods and nodes would else reach services that listen for this machine alone.
#[must_use]
pub fn is_proxyable(address: IpAddr) -> bool {
    let refused = |special: bool, address: IpAddr| {
        special || address.is_unspecified() || address.is_loopback() || address.is_multicast()
    };
    match address.to_canonical() {
        IpAddr::V4(v4) => !refused(v4.is_link_local() || v4.is_broadcast(), v4.into()),
        IpAddr::V6(v6) => !refused(v6.is_unicast_link_local(), v6.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_single_hosts_are_proxied() {
        for (address, allowed) in [
            ("10.0.0.1", true),
            ("192.0.2.2", true),
            ("fd00::2", true),
            ("127.0.0.1", false),
            ("127.9.9.9", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("169.254.169.254", false),
            ("::ffff:169.254.169.254", false),
            ("fe80::1", false),
            ("0.0.0.0", false),
            ("::", false),
            ("224.0.0.1", false),
            ("ff02::1", false),
            ("255.255.255.255", false),
        ] {
            let parsed = address.parse().expect("an address");
            assert_eq!(is_proxyable(parsed), allowed, "{address}");
        }
    }
}
