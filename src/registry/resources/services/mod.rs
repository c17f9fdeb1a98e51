//! Services: under which addresses they are reached, and what they have of the numbers that only one can have.

mod changes;

use std::net::Ipv4Addr;

use serde_json::{Value, json};

pub(in crate::registry) use self::changes::{has_address, has_node_ports, is_health_checked};
use super::path::{get, list, set, text};
use super::peculiar::Peculiar;
use crate::registry::RequestContext;

/// Services without an address of their own.
pub(in crate::registry) const HEADLESS: &str = "None";

/// Which service has something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::registry) struct Owner {
    pub(in crate::registry) namespace: String,
    pub(in crate::registry) name: String,
}

impl Owner {
    pub(in crate::registry) fn of(service: &Value) -> Self {
        Self {
            namespace: text(service, "metadata.namespace").to_owned(),
            name: text(service, "metadata.name").to_owned(),
        }
    }
}

/// What is peculiar about services. Addresses and ports are handed out by the store.
#[derive(Debug)]
pub(super) struct Services;

impl Peculiar for Services {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        name_addresses(object);
    }

    /// What was given stays, though a client that never read it leaves it out.
    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        changes::carry_over(object, old);
        name_addresses(object);
    }
}

/// The address of the cluster that a service has.
pub(in crate::registry) fn address_of(service: &Value) -> Option<Ipv4Addr> {
    text(service, "spec.clusterIP").parse().ok()
}

/// The ports that a service has on the nodes.
pub(in crate::registry) fn node_ports_of(service: &Value) -> Vec<u16> {
    let ports = list(service, "spec.ports").iter();
    let ports = ports.filter_map(|port| get(port, "nodePort"));
    let all = ports.chain(get(service, "spec.healthCheckNodePort"));
    all.filter_map(|port| u16::try_from(port.as_u64()?).ok())
        .collect()
}

/// Says the same of the address in both places where it stands, and of which family it is: the cluster has addresses of version 4
/// alone; a headless service that selects nothing may be told of both.
fn name_addresses(service: &mut Value) {
    if !has_address(service) {
        return;
    }
    let first = list(service, "spec.clusterIPs").first().cloned();
    match (text(service, "spec.clusterIP"), first) {
        ("", Some(first)) => set(service, "spec.clusterIP", first),
        ("", None) => {}
        (one, None) => {
            let all = json!([one]);
            set(service, "spec.clusterIPs", all);
        }
        (_, Some(_)) => {}
    }
    choose_families(service);
}

fn choose_families(service: &mut Value) {
    let headless = text(service, "spec.clusterIP") == HEADLESS;
    let both = headless && get(service, "spec.selector").is_none();
    let (policy, families) = if both {
        ("RequireDualStack", json!(["IPv4", "IPv6"]))
    } else {
        ("SingleStack", json!(["IPv4"]))
    };
    if get(service, "spec.ipFamilyPolicy").is_none() {
        set(service, "spec.ipFamilyPolicy", policy.into());
    }
    if list(service, "spec.ipFamilies").is_empty() {
        set(service, "spec.ipFamilies", families);
    }
}
