//! The addresses and ports that a service needs and does not have, and those that it no longer needs.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use ringwatch_apimachinery::path::{get, list, set, text};
use serde_json::{Value, json};

use super::Numbers;
use crate::core::service::{self, HEADLESS, has_address, has_node_ports, is_health_checked};

const HEALTH_CHECK: &str = "spec.healthCheckNodePort";

/// The addresses and ports that a new or changed service needs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// An address: this one, or any (empty).
    pub(super) address: Option<String>,
    ports: Vec<NeededPort>,
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
        if is_health_checked(service) && !old.is_some_and(is_health_checked) {
            ports.push(NeededPort {
                requested: port_at(service, HEALTH_CHECK),
                places: Vec::new(),
            });
        }
        Self {
            address: address(service, old),
            ports,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.address.is_none() && self.ports.is_empty()
    }

    pub(super) fn asked_ports(&self) -> Vec<Option<u16>> {
        self.ports.iter().map(|it| it.requested).collect()
    }

    /// Returns the position of the service's port that requested a node port; `None` for its health check.
    pub(super) fn place_of(&self, number: u16) -> Option<usize> {
        let needed = self.ports.iter().find(|it| it.requested == Some(number))?;
        needed.places.first().copied()
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

pub(super) fn set_address(service: &mut Value, address: Ipv4Addr) {
    let address = address.to_string();
    set(service, "spec.clusterIPs", json!([address]));
    set(service, "spec.clusterIP", json!(address));
}

/// Returns the addresses and ports that the old service has and the new one does not.
pub(super) fn given_up(service: &Value, old: &Value) -> Numbers {
    let address = service::address_of(old);
    let kept: HashSet<_> = service::node_ports_of(service).into_iter().collect();
    let mut ports = service::node_ports_of(old);
    ports.retain(|port| !kept.contains(port));
    Numbers {
        address: address.filter(|_| has_address(old) && !has_address(service)),
        ports,
    }
}

/// Returns the cluster IP that a service begins to need: empty for any. `None` if it needs none or keeps its own.
fn address(service: &Value, old: Option<&Value>) -> Option<String> {
    if !has_address(service) || old.is_some_and(has_address) {
        return None;
    }
    let requested = match text(service, "spec.clusterIP") {
        "" => list(service, "spec.clusterIPs")
            .first()
            .and_then(Value::as_str),
        requested => Some(requested),
    };
    let requested = requested.unwrap_or_default();
    (requested != HEADLESS).then(|| requested.to_owned())
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
        if requested.is_none() && !takes_any(service) {
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
            None if !takes_any(service) => continue,
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
pub(super) fn no_port(service: &Value) -> Option<(Option<usize>, i64)> {
    if !has_node_ports(service) {
        return None;
    }
    let ports = list(service, "spec.ports").iter().enumerate();
    let requested = ports.map(|(place, port)| (Some(place), get(port, "nodePort")));
    let mut requested = requested.chain([(None, get(service, HEALTH_CHECK))]);
    requested.find_map(|(place, number)| {
        let number = number?.as_i64()?;
        u16::try_from(number).is_err().then_some((place, number))
    })
}

/// Returns true if ports without a node port get one.
fn takes_any(service: &Value) -> bool {
    text(service, "spec.type") == "NodePort"
        || get(service, "spec.allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
}

fn ports(service: &Value) -> impl Iterator<Item = u16> {
    let ports = list(service, "spec.ports").iter();
    ports.filter_map(|port| port_at(port, "nodePort"))
}

fn port_at(value: &Value, path: &str) -> Option<u16> {
    let number = get(value, path).and_then(Value::as_u64)?;
    u16::try_from(number).ok().filter(|number| *number > 0)
}
