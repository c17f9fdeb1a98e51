//! Fields of a service that an update keeps though the client leaves them out, and fields that it drops though the
//! client sends them back as it read them.

use std::collections::{HashMap, HashSet};

use ringwatch_apimachinery::path::{get, keep, list, remove, set, text};
use serde_json::Value;

/// Paths of the cluster IPs and their families, in the order that [`carry_over_addresses`] expects.
const ADDRESSES: [&str; 4] = [
    "spec.clusterIP",
    "spec.clusterIPs",
    "spec.ipFamilies",
    "spec.ipFamilyPolicy",
];
const HEALTH_CHECK: &str = "spec.healthCheckNodePort";

/// Completes the new spec from the old one: drops fields that no longer apply to the type and keeps assigned addresses
/// and ports.
pub(super) fn carry_over(service: &mut Value, old: &Value) {
    drop_what_no_longer_applies(service, old);
    if has_address(service) && has_address(old) {
        carry_over_addresses(service, old);
    }
    if has_node_ports(service) && has_node_ports(old) {
        keep_node_ports(service, old);
    }
    if is_health_checked(service) && is_health_checked(old) && get(service, HEALTH_CHECK).is_none()
    {
        keep(service, old, HEALTH_CHECK);
    }
}

/// Keeps cluster IPs that the client leaves out. A client that changes `clusterIP` alone means the first of
/// `clusterIPs`. The families of what is kept follow from it.
fn carry_over_addresses(service: &mut Value, old: &Value) {
    let [one, all, ..] = ADDRESSES;
    if get(service, one).is_none() {
        keep(service, old, one);
    }
    let changed = get(service, one).filter(|it| get(old, one) != Some(it));
    if let Some(changed) = changed.cloned() {
        if get(service, all).is_none() || get(service, all) == get(old, all) {
            set(service, all, Value::Array(vec![changed]));
        }
    } else if get(service, all).is_none() {
        keep(service, old, all);
    }
}

fn drop_what_no_longer_applies(service: &mut Value, old: &Value) {
    let ends = |applies: fn(&Value) -> bool, service: &Value| applies(old) && !applies(service);
    let is_balanced = |service: &Value| text(service, "spec.type") == "LoadBalancer";
    let mut gone: Vec<&str> = Vec::new();
    if ends(has_address, service) {
        gone.extend(ADDRESSES);
    }
    if ends(is_health_checked, service) {
        gone.push(HEALTH_CHECK);
    }
    if ends(is_balanced, service) {
        gone.extend([
            "spec.allocateLoadBalancerNodePorts",
            "spec.loadBalancerClass",
        ]);
    }
    if ends(is_reached_from_outside, service) {
        gone.push("spec.externalTrafficPolicy");
    }
    for path in gone {
        // A value that the client changed is meant, and validation judges it.
        if get(service, path) == get(old, path) {
            drop(remove(service, path));
        }
    }
    if ends(has_node_ports, service) && node_ports(service) == node_ports(old) {
        let ports = service
            .pointer_mut("/spec/ports")
            .and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            drop(remove(port, "nodePort"));
        }
    }
}

pub(crate) fn has_address(service: &Value) -> bool {
    text(service, "spec.type") != "ExternalName"
}

pub(crate) fn has_node_ports(service: &Value) -> bool {
    matches!(text(service, "spec.type"), "NodePort" | "LoadBalancer")
}

/// Returns true if the service has a health check port on the nodes: type `LoadBalancer` with local external traffic.
pub(crate) fn is_health_checked(service: &Value) -> bool {
    text(service, "spec.type") == "LoadBalancer"
        && text(service, "spec.externalTrafficPolicy") == "Local"
}

fn is_reached_from_outside(service: &Value) -> bool {
    has_node_ports(service)
        || (text(service, "spec.type") == "ClusterIP"
            && !list(service, "spec.externalIPs").is_empty())
}

fn node_ports(service: &Value) -> Vec<Option<&Value>> {
    let ports = list(service, "spec.ports").iter();
    ports.map(|port| get(port, "nodePort")).collect()
}

fn keep_node_ports(service: &mut Value, old: &Value) {
    fn key(port: &Value) -> (Option<&Value>, Option<&Value>) {
        (get(port, "port"), get(port, "protocol"))
    }
    let mut before = HashMap::new();
    for port in list(old, "spec.ports") {
        before.entry(key(port)).or_insert(port);
    }
    let mut ports = list(service, "spec.ports").to_vec();
    // A number that the client gave to another port is not available.
    let requested: HashSet<Value> = ports
        .iter()
        .filter_map(|it| get(it, "nodePort").cloned())
        .collect();
    for port in &mut ports {
        let before = before.get(&key(port));
        let number = before.and_then(|before| get(before, "nodePort"));
        if let (None, Some(number)) = (get(port, "nodePort"), number)
            && !requested.contains(number)
        {
            set(port, "nodePort", number.clone());
        }
    }
    set(service, "spec.ports", Value::Array(ports));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_type_alone_has_goes_with_it() {
        let old = json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 30_001,
            "allocateLoadBalancerNodePorts": true, "ports": [{"port": 80, "nodePort": 30_000}]}});
        let mut inside = old.clone();
        set(&mut inside, "spec.type", json!("ClusterIP"));
        carry_over(&mut inside, &old);
        assert_eq!(
            inside["spec"],
            json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "ports": [{"port": 80}]})
        );
        let mut elsewhere = inside.clone();
        set(&mut elsewhere, "spec.type", json!("ExternalName"));
        carry_over(&mut elsewhere, &inside);
        assert_eq!(
            elsewhere["spec"],
            json!({"type": "ExternalName", "ports": [{"port": 80}]})
        );
    }

    #[test]
    fn what_was_given_stays_where_it_is_left_out() {
        let old = json!({"spec": {"type": "NodePort", "clusterIP": "10.0.0.1",
            "ports": [{"port": 80, "nodePort": 30_000}, {"port": 81, "nodePort": 30_001}]}});
        let mut new = json!({"spec": {"type": "NodePort",
            "ports": [{"port": 80}, {"port": 81, "nodePort": 30_000}]}});
        carry_over(&mut new, &old);
        assert_eq!(
            new["spec"],
            json!({"type": "NodePort", "clusterIP": "10.0.0.1",
                "ports": [{"port": 80}, {"port": 81, "nodePort": 30_000}]})
        );
    }
}
