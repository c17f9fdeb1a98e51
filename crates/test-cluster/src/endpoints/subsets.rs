//! The subsets of Endpoints: each has the addresses that offer the same ports.
//!
//! Source of the semantics: `pkg/api/v1/endpoints/util.go` and `pkg/controller/endpoint` of kube-controller-manager
//! 1.36. There subsets and ports are in the order of their hashes, here of their values.

use std::collections::BTreeMap;

use ringwatch_apimachinery::path;
use serde_json::{Value, json};

/// Maximum number of addresses in Endpoints.
const ADDRESSES_MAX: usize = 1000;

/// The address and the uid of what is behind it, by which addresses are told apart.
type AddressKey = (String, String);

/// A port by number, name, protocol and the protocol of the application. There is none for Services without ports.
type PortKey = Option<(i64, String, String, Option<String>)>;

/// An address that offers a port, or all of them for `None`.
#[derive(Clone, Debug)]
pub(super) struct OfferedPort {
    /// The address as Endpoints have it.
    pub(super) address: Value,
    pub(super) port: Option<Value>,
    pub(super) is_ready: bool,
}

/// Returns the subsets in which each address stands once for the same ports. An address that is not ready once is not.
pub(super) fn pack(offers: impl IntoIterator<Item = OfferedPort>) -> Vec<Value> {
    let mut addresses: BTreeMap<AddressKey, Value> = BTreeMap::new();
    let mut offering: BTreeMap<PortKey, (Option<Value>, BTreeMap<AddressKey, bool>)> =
        BTreeMap::new();
    for OfferedPort {
        address,
        port,
        is_ready,
    } in offers
    {
        let key = address_key(&address);
        addresses.entry(key.clone()).or_insert(address);
        let (_, ready) = offering
            .entry(port_key(port.as_ref()))
            .or_insert_with(|| (port, BTreeMap::new()));
        *ready.entry(key).or_insert(true) &= is_ready;
    }
    let mut subsets: BTreeMap<BTreeMap<AddressKey, bool>, Vec<Value>> = BTreeMap::new();
    for (port, ready) in offering.into_values() {
        subsets.entry(ready).or_default().extend(port);
    }
    let subset = |(ready, ports): (BTreeMap<AddressKey, bool>, Vec<Value>)| {
        let mut subset = json!({});
        for (member, wanted) in [("addresses", true), ("notReadyAddresses", false)] {
            let named = ready.iter().filter(|(_, is_ready)| **is_ready == wanted);
            let named = named.filter_map(|(key, _)| addresses.get(key).cloned());
            let named: Vec<Value> = named.collect();
            if !named.is_empty() {
                subset[member] = named.into();
            }
        }
        if !ports.is_empty() {
            subset["ports"] = ports.into();
        }
        subset
    };
    subsets.into_iter().map(subset).collect()
}

/// Returns what the subsets of Endpoints offer.
pub(super) fn unpack(endpoints: &Value) -> Vec<OfferedPort> {
    let mut offers = Vec::new();
    for subset in path::list(endpoints, "subsets") {
        let ports = path::list(subset, "ports");
        for (member, is_ready) in [("addresses", true), ("notReadyAddresses", false)] {
            for address in path::list(subset, member) {
                let mut address = address.clone();
                // The revision of a pod says nothing about where it is.
                drop(path::remove(&mut address, "targetRef.resourceVersion"));
                let offer = |port: Option<&Value>| OfferedPort {
                    address: address.clone(),
                    port: port.cloned(),
                    is_ready,
                };
                if ports.is_empty() {
                    offers.push(offer(None));
                }
                offers.extend(ports.iter().map(|it| offer(Some(it))));
            }
        }
    }
    offers
}

/// Leaves out the addresses for which Endpoints have no room, those first that are not ready. Subsets keep a part as
/// large as theirs of all. Returns true if any were left out.
pub(super) fn truncate(subsets: &mut Vec<Value>) -> bool {
    let count = |subsets: &[Value], member: &str| -> usize {
        subsets.iter().map(|it| path::list(it, member).len()).sum()
    };
    let ready = count(subsets, "addresses");
    let waiting = count(subsets, "notReadyAddresses");
    if ready.saturating_add(waiting) <= ADDRESSES_MAX {
        return false;
    }
    let (member, all, room) = if ready > ADDRESSES_MAX {
        ("addresses", ready, ADDRESSES_MAX)
    } else {
        (
            "notReadyAddresses",
            waiting,
            ADDRESSES_MAX.saturating_sub(ready),
        )
    };
    let mut left = room;
    for subset in subsets.iter_mut() {
        if member == "addresses" {
            drop(path::remove(subset, "notReadyAddresses"));
        }
        let Some(addresses) = subset[member].as_array_mut() else {
            continue;
        };
        let part = addresses.len().saturating_mul(room).div_ceil(all);
        addresses.truncate(part.min(left));
        left = left.saturating_sub(addresses.len());
        if addresses.is_empty() {
            drop(path::remove(subset, member));
        }
    }
    subsets.retain(|it| !(it["addresses"].is_null() && it["notReadyAddresses"].is_null()));
    true
}

fn address_key(address: &Value) -> AddressKey {
    (
        path::text(address, "ip").to_owned(),
        path::text(address, "targetRef.uid").to_owned(),
    )
}

fn port_key(port: Option<&Value>) -> PortKey {
    let port = port?;
    Some((
        port["port"].as_i64().unwrap_or_default(),
        path::text(port, "name").to_owned(),
        port["protocol"].as_str().unwrap_or("TCP").to_owned(),
        port["appProtocol"].as_str().map(str::to_owned),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(ip: &str, port: Option<i64>, is_ready: bool) -> OfferedPort {
        OfferedPort {
            address: json!({ "ip": ip }),
            port: port.map(|it| json!({"name": it.to_string(), "port": it, "protocol": "TCP"})),
            is_ready,
        }
    }

    fn port(number: i64) -> Value {
        json!({"name": number.to_string(), "port": number, "protocol": "TCP"})
    }

    #[test]
    fn addresses_with_the_same_ports_are_in_one_subset() {
        let offers = [
            offer("10.0.0.2", Some(80), true),
            offer("10.0.0.2", Some(81), true),
            offer("10.0.0.1", Some(81), true),
            offer("10.0.0.1", Some(80), true),
            offer("10.0.0.3", Some(80), false),
        ];
        let subsets = pack(offers.clone());
        assert_eq!(
            subsets,
            [
                json!({
                    "addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}],
                    "ports": [port(81)],
                }),
                json!({
                    "addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}],
                    "notReadyAddresses": [{"ip": "10.0.0.3"}],
                    "ports": [port(80)],
                }),
            ]
        );
        let endpoints = json!({ "subsets": subsets });
        assert_eq!(
            pack(unpack(&endpoints)),
            subsets,
            "packing again changes nothing"
        );
        let fewer = pack(offers.into_iter().take(4));
        assert_eq!(fewer.len(), 1, "{fewer:?}");
    }

    #[test]
    fn an_address_that_is_not_ready_once_is_not_and_ports_may_be_missing() {
        let subsets = pack([
            offer("10.0.0.1", None, true),
            offer("10.0.0.1", None, false),
        ]);
        assert_eq!(
            subsets,
            [json!({"notReadyAddresses": [{"ip": "10.0.0.1"}]})]
        );
    }

    #[test]
    fn what_is_not_ready_goes_first_for_want_of_room() {
        let lists = |ready: usize, waiting: usize| {
            let address = |number: usize| json!({"ip": number.to_string()});
            json!({
                "addresses": (0..ready).map(address).collect::<Vec<_>>(),
                "notReadyAddresses": (0..waiting).map(address).collect::<Vec<_>>(),
            })
        };
        let counts = |subsets: &[Value]| -> Vec<(usize, usize)> {
            let counts = subsets.iter().map(|it| {
                let count = |member| path::list(it, member).len();
                (count("addresses"), count("notReadyAddresses"))
            });
            counts.collect()
        };
        let mut few = vec![lists(600, 400)];
        assert!(!truncate(&mut few));
        let mut more = vec![lists(300, 300), lists(300, 600)];
        assert!(truncate(&mut more));
        assert_eq!(counts(&more), [(300, 134), (300, 266)]);
        let mut many = vec![lists(1500, 5), lists(500, 0)];
        assert!(truncate(&mut many));
        assert_eq!(counts(&many), [(750, 0), (250, 0)]);
    }
}
