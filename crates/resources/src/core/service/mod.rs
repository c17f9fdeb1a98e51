//! Services: cluster IPs and node ports, which only one service can have.

mod changes;
pub(crate) mod table;
pub(crate) mod validation;

use std::net::Ipv4Addr;

use serde_json::{Value, json};

pub(crate) use self::changes::{has_address, has_node_ports, is_health_checked};
use ringwatch_apimachinery::path::{get, list, set, text};
use ringwatch_registry::RequestContext;

use crate::strategy::kind_hooks::KindHooks;

/// Value of `spec.clusterIP` of headless services.
pub(crate) const HEADLESS: &str = "None";

/// The service that holds an address or a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Owner {
    pub(crate) fn new(service: &Value) -> Self {
        Self {
            namespace: text(service, "metadata.namespace").to_owned(),
            name: text(service, "metadata.name").to_owned(),
        }
    }
}

/// The behaviour of services: consistent address fields, and fields that updates keep or drop. The store allocates
/// addresses and ports.
#[derive(Debug)]
pub(super) struct Services;

impl KindHooks for Services {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        name_addresses(object);
    }

    /// Keeps assigned addresses and ports that a client leaves out.
    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        changes::carry_over(object, old);
        name_addresses(object);
    }
}

/// Returns the cluster IP of a service, if it has one of IPv4.
pub(crate) fn address_of(service: &Value) -> Option<Ipv4Addr> {
    text(service, "spec.clusterIP").parse().ok()
}

/// Returns the node ports of a service, the health check port included.
pub(crate) fn node_ports_of(service: &Value) -> Vec<u16> {
    let ports = list(service, "spec.ports").iter();
    let ports = ports.filter_map(|port| get(port, "nodePort"));
    let all = ports.chain(get(service, "spec.healthCheckNodePort"));
    all.filter_map(|port| u16::try_from(port.as_u64()?).ok())
        .collect()
}

/// Fills in `clusterIP` or `clusterIPs` from the other, and the IP families. The cluster has IPv4 addresses alone; a
/// headless service without a selector gets both families.
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
