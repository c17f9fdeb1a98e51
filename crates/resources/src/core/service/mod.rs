//! Services: cluster IPs and node ports, which only one service can have.

mod changes;
mod families;
pub(crate) mod table;
pub(crate) mod validation;

use std::net::IpAddr;

use serde_json::{Value, json};

pub(crate) use self::changes::{has_address, has_node_ports, is_health_checked};
use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, list, set, text};
use ringwatch_registry::RequestContext;

use self::families::Completion;
use crate::service_ranges::Families;
use crate::strategy::kind_hooks::KindHooks;
use crate::validation::values::address;

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
pub(super) struct Services {
    /// The families of the addresses that services get.
    pub(super) families: Families,
}

impl Services {
    /// Returns the fields that contradict each other, or ask for a family that services do not get here.
    fn family_errors(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let completed = Completion(self.families).complete(&mut object.clone(), old);
        completed.err().unwrap_or_default()
    }
}

impl KindHooks for Services {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        name_addresses(object);
        // Validation, which follows, tells the errors.
        let _ = Completion(self.families).complete(object, None);
    }

    /// Keeps assigned addresses and ports that a client leaves out.
    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        changes::carry_over(object, old);
        name_addresses(object);
        let _ = Completion(self.families).complete(object, Some(old));
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        self.family_errors(object, None)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.family_errors(object, Some(old))
    }
}

/// Returns the cluster IPs of a service: none, one, or one of each family.
pub(crate) fn addresses_of(service: &Value) -> Vec<IpAddr> {
    let first = text(service, "spec.clusterIP");
    let all = list(service, "spec.clusterIPs").iter();
    let rest = all.filter_map(Value::as_str).filter(|it| *it != first);
    let all = [first].into_iter().chain(rest);
    all.filter_map(address).collect()
}

/// Returns the node ports of a service, the health check port included.
pub(crate) fn node_ports_of(service: &Value) -> Vec<u16> {
    let ports = list(service, "spec.ports").iter();
    let ports = ports.filter_map(|port| get(port, "nodePort"));
    let all = ports.chain(get(service, "spec.healthCheckNodePort"));
    all.filter_map(|port| u16::try_from(port.as_u64()?).ok())
        .collect()
}

/// Fills in `clusterIP` or `clusterIPs` from the other.
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
}
