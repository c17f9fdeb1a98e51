//! Services: cluster IPs and node ports, which only one service can have.

mod changes;
mod families;
mod source_ranges;
pub(crate) mod table;
pub(crate) mod validation;
pub(crate) mod warnings;

use std::net::IpAddr;

use serde_json::{Value, json};

pub(crate) use self::changes::{has_address, has_node_ports, is_health_checked, takes_node_ports};
use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, list, set, text};
use ringwatch_apimachinery::validation::formats;
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

    /// Returns true if the name can stand in the note of an allocation. All valid names of services can.
    pub(crate) fn can_be_noted(&self) -> bool {
        !self.name.is_empty() && formats::path_segment(&self.name, false).is_empty()
    }
}

/// The behaviour of services: fields that updates drop with the type that has them. The store allocates addresses and
/// ports.
#[derive(Debug)]
pub(super) struct Services;

impl KindHooks for Services {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        changes::drop_internal_policy(object);
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        changes::drop_what_no_longer_applies(object, old);
        changes::drop_internal_policy(object);
    }
}

/// Fills in what a client may leave out of the fields that are allocated: those that an update keeps, and the families
/// of the addresses that a cluster of these families gives. Follows `beginCreate` and `beginUpdate`.
///
/// # Errors
/// The fields that contradict each other, or ask for a family that services do not get here.
pub(crate) fn complete(
    service: &mut Value,
    old: Option<&Value>,
    families: Families,
) -> Result<(), Vec<FieldError>> {
    if let Some(old) = old {
        changes::keep_assigned(service, old);
    }
    name_addresses(service);
    Completion(families).complete(service, old)
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

/// Fills in the list of cluster IPs of a client that knows one only. Follows `normalizeClusterIPs`.
fn name_addresses(service: &mut Value) {
    let one = text(service, "spec.clusterIP");
    if !one.is_empty() && list(service, "spec.clusterIPs").is_empty() {
        let all = json!([one]);
        set(service, "spec.clusterIPs", all);
    }
}
