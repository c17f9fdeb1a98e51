//! The addresses and ports that a service needs and does not have, and those that it no longer needs.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ringwatch_apimachinery::path::{get, list, set, text};
use serde_json::{Value, json};

use super::Numbers;
use crate::core::service::{
    self, HEADLESS, has_address, has_node_ports, is_health_checked, takes_node_ports,
};
use crate::service_ranges::Family;

const HEALTH_CHECK: &str = "spec.healthCheckNodePort";

/// The addresses and ports that a new or changed service needs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// The addresses, in the order of the service's families from the first that has none.
    pub(super) addresses: Vec<NeededAddress>,
    ports: Vec<NeededPort>,
}

/// A cluster IP that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NeededAddress {
    pub(super) family: Family,
    /// The address that the client asks for; empty for any.
    pub(super) requested: String,
    /// The position in `spec.clusterIPs`.
    place: usize,
}

/// A port of the nodes that is needed.
#[derive(Debug)]
struct NeededPort {
    requested: Option<u16>,
    /// The positions of the service's ports that are reached there; none for its health check.
    places: Vec<usize>,
}

impl Needs {
    pub(super) fn new(service: &Value, old: Option<&Value>) -> Self {
        let mut ports = match old {
            _ if !has_node_ports(service) => Vec::new(),
            None => ports_of_new(service),
            Some(old) => ports_of_changed(service, old),
        };
        if begins_health_check(service, old) {
            ports.push(NeededPort {
                requested: port_at(service, HEALTH_CHECK),
                places: Vec::new(),
            });
        }
        Self {
            addresses: addresses(service, old),
            ports,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.ports.is_empty()
    }

    pub(super) fn asked_ports(&self) -> Vec<Option<u16>> {
        self.ports.iter().map(|it| it.requested).collect()
    }

    /// Returns the position of the service's port that requested a node port; `None` for its health check.
    pub(super) fn place_of(&self, number: u16) -> Option<usize> {
        let needed = self.ports.iter().find(|it| it.requested == Some(number))?;
        needed.places.first().copied()
    }

    /// Returns the position of the service's port for which the node port of this position is needed; `None` for its
    /// health check.
    pub(super) fn place_of_request(&self, request: usize) -> Option<usize> {
        self.ports.get(request)?.places.first().copied()
    }

    /// Writes down what was given, in the order of what was needed.
    pub(super) fn set_ports(&self, service: &mut Value, given: &[u16]) {
        for (needed, number) in self.ports.iter().zip(given) {
            if needed.places.is_empty() {
                set(service, HEALTH_CHECK, json!(number));
            }
            for place in &needed.places {
                if let Some(port) = service.pointer_mut(&format!("/spec/ports/{place}")) {
                    set(port, "nodePort", json!(number));
                }
            }
        }
    }
}

/// Writes down an address that was given.
pub(super) fn set_address(service: &mut Value, needed: &NeededAddress, address: IpAddr) {
    let mut all = list(service, "spec.clusterIPs").to_vec();
    let mut given = json!(address.to_string());
    match all.get_mut(needed.place) {
        // One that was asked for stays as the client wrote it.
        Some(there) if !needed.requested.is_empty() => given = there.clone(),
        Some(there) => *there = given.clone(),
        None => all.push(given.clone()),
    }
    set(service, "spec.clusterIPs", Value::Array(all));
    if needed.place == 0 {
        set(service, "spec.clusterIP", given);
    }
}

/// Returns the addresses and ports that the old service has and the new one does not. What the new one's type does not
/// have is given up, since validation lets it name none.
pub(super) fn given_up(service: &Value, old: &Value) -> Numbers {
    let held = |service: &Value| -> (HashSet<IpAddr>, HashSet<u16>) {
        let addresses = service::addresses_of(service).into_iter();
        let ports = ports(service).filter(|_| has_node_ports(service));
        let check = port_at(service, HEALTH_CHECK).filter(|_| is_health_checked(service));
        (
            addresses.filter(|_| has_address(service)).collect(),
            ports.chain(check).collect(),
        )
    };
    let ((addresses, ports), (kept_addresses, kept_ports)) = (held(old), held(service));
    Numbers {
        addresses: addresses.difference(&kept_addresses).copied().collect(),
        ports: ports.difference(&kept_ports).copied().collect(),
    }
}

/// Returns the cluster IPs that a service begins to need: one for each family that had none.
fn addresses(service: &Value, old: Option<&Value>) -> Vec<NeededAddress> {
    let all = list(service, "spec.clusterIPs");
    let first = text(service, "spec.clusterIP");
    if !has_address(service) || first == HEADLESS || all.first().is_some_and(|it| it == HEADLESS) {
        return Vec::new();
    }
    let old = old.filter(|old| has_address(old));
    let had = match old {
        Some(old) if text(old, "spec.clusterIP") == HEADLESS => return Vec::new(),
        // One that was stored before it had a list has one address.
        Some(old) => list(old, "spec.clusterIPs").len().max(1),
        None => 0,
    };
    let families = list(service, "spec.ipFamilies").iter().enumerate();
    families
        .skip(had)
        .filter_map(|(place, family)| {
            let requested = all.get(place).and_then(Value::as_str);
            let requested = requested.unwrap_or(if place == 0 { first } else { "" });
            Some(NeededAddress {
                family: Family::parse(family)?,
                requested: requested.to_owned(),
                place,
            })
        })
        .collect()
}

/// Ports of a new service with one number, such as those of two protocols, share a port of the nodes unless they ask
/// for others.
fn ports_of_new(service: &Value) -> Vec<NeededPort> {
    let ports = list(service, "spec.ports");
    let mut asked_by_number = HashMap::new();
    for port in ports {
        if let Some(requested) = port_at(port, "nodePort") {
            asked_by_number
                .entry(get(port, "port"))
                .or_insert(requested);
        }
    }
    let mut first_by_number = HashMap::new();
    let mut needed: Vec<NeededPort> = Vec::new();
    for (place, port) in ports.iter().enumerate() {
        let number = get(port, "port");
        let requested = port_at(port, "nodePort");
        if requested.is_none() && !takes_node_ports(service) {
            continue;
        }
        let requested = match first_by_number.entry(number) {
            Entry::Vacant(first) => {
                first.insert(needed.len());
                asked_by_number.get(&number).copied()
            }
            Entry::Occupied(first) => {
                let first = &mut needed[*first.get()];
                if requested.is_none() || requested == first.requested {
                    first.places.push(place);
                    continue;
                }
                requested
            }
        };
        needed.push(NeededPort {
            requested,
            places: vec![place],
        });
    }
    needed
}

fn ports_of_changed(service: &Value, old: &Value) -> Vec<NeededPort> {
    let mut had: HashSet<u16> = ports(old).collect();
    let mut needed = Vec::new();
    for (place, port) in list(service, "spec.ports").iter().enumerate() {
        let requested = port_at(port, "nodePort");
        match requested {
            Some(requested) if had.contains(&requested) => continue,
            Some(requested) => drop(had.insert(requested)),
            None if !takes_node_ports(service) => continue,
            None => {}
        }
        needed.push(NeededPort {
            requested,
            places: vec![place],
        });
    }
    needed
}

/// Returns a number that is asked for as a port of the nodes and is none, with the port of the service that asks for
/// it; none if its health check does.
pub(super) fn no_port(service: &Value, old: Option<&Value>) -> Option<(Option<usize>, i64)> {
    if !has_node_ports(service) {
        return None;
    }
    let ports = list(service, "spec.ports").iter().enumerate();
    let requested = ports.map(|(place, port)| (Some(place), get(port, "nodePort")));
    let check = begins_health_check(service, old).then_some((None, get(service, HEALTH_CHECK)));
    let mut requested = requested.chain(check);
    requested.find_map(|(place, number)| {
        let number = number?.as_i64()?;
        u16::try_from(number).is_err().then_some((place, number))
    })
}

/// Returns true if a write makes a service one whose health is checked on the nodes.
fn begins_health_check(service: &Value, old: Option<&Value>) -> bool {
    is_health_checked(service) && !old.is_some_and(is_health_checked)
}

fn ports(service: &Value) -> impl Iterator<Item = u16> {
    let ports = list(service, "spec.ports").iter();
    ports.filter_map(|port| port_at(port, "nodePort"))
}

fn port_at(value: &Value, path: &str) -> Option<u16> {
    let number = get(value, path).and_then(Value::as_u64)?;
    u16::try_from(number).ok().filter(|number| *number > 0)
}
