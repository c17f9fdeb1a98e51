//! Fields of a service that an update keeps though the client leaves them out, and fields that it drops though the
//! client sends them back as it read them.

use std::collections::{HashMap, HashSet};

use ringwatch_apimachinery::path::{get, get_mut, keep, list, remove, set, text};
use serde_json::{Value, json};

use super::validation::TRAFFIC;

/// Paths of the cluster IPs and their families, in the order that [`carry_over_addresses`] expects.
const ADDRESSES: [&str; 4] = [
    "spec.clusterIP",
    "spec.clusterIPs",
    "spec.ipFamilies",
    "spec.ipFamilyPolicy",
];
const HEALTH_CHECK: &str = "spec.healthCheckNodePort";
const NODE_PORT: &str = "nodePort";

/// Keeps assigned addresses and ports that the client leaves out. Follows `patchAllocatedValues`.
pub(super) fn keep_assigned(service: &mut Value, old: &Value) {
    if has_address(service) && has_address(old) {
        carry_over_addresses(service, old);
    }
    if takes_node_ports(service) && takes_node_ports(old) {
        keep_node_ports(service, old);
    }
    if is_health_checked(service)
        && is_health_checked(old)
        && port_number(service, HEALTH_CHECK).is_none()
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

/// Drops fields that no longer apply to the type, unless the client changed them. Follows `dropTypeDependentFields`.
pub(super) fn drop_what_no_longer_applies(service: &mut Value, old: &Value) {
    let ends = |applies: fn(&Value) -> bool, service: &Value| applies(old) && !applies(service);
    let is_balanced = |service: &Value| text(service, "spec.type") == "LoadBalancer";
    let mut gone: Vec<&str> = Vec::new();
    if ends(has_address, service) {
        let [one, all, families, policy] = ADDRESSES;
        // A client that changes one of the first two means both.
        if get(service, one) == get(old, one) && get(service, all) == get(old, all) {
            gone.extend([one, all]);
        }
        gone.extend([families, policy]);
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
    if ends(has_node_ports, service) && node_ports(service).is_subset(&node_ports(old)) {
        let ports = service
            .pointer_mut("/spec/ports")
            .and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            drop(remove(port, "nodePort"));
        }
    }
    if !is_balanced(service)
        && let Some(balancer) = get_mut(service, "status.loadBalancer")
    {
        *balancer = json!({});
    }
}

/// Drops the internal traffic policy of external services, which kube-apiserver stores but never shows
/// (`defaultOnReadInternalTrafficPolicy`). One that is none is left to validation.
pub(super) fn drop_internal_policy(service: &mut Value) {
    let path = "spec.internalTrafficPolicy";
    if !has_address(service) && TRAFFIC.contains(&text(service, path)) {
        drop(remove(service, path));
    }
}

pub(crate) fn has_address(service: &Value) -> bool {
    text(service, "spec.type") != "ExternalName"
}

pub(crate) fn has_node_ports(service: &Value) -> bool {
    matches!(text(service, "spec.type"), "NodePort" | "LoadBalancer")
}

/// Returns true if ports of the service without a node port get one.
pub(crate) fn takes_node_ports(service: &Value) -> bool {
    has_node_ports(service)
        && (text(service, "spec.type") == "NodePort"
            || get(service, "spec.allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)))
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

/// Returns the port number at a path; none for 0, by which clients ask for any.
fn port_number(value: &Value, path: &str) -> Option<i64> {
    get(value, path)
        .and_then(Value::as_i64)
        .filter(|it| *it != 0)
}

fn node_ports(service: &Value) -> HashSet<i64> {
    let ports = list(service, "spec.ports").iter();
    ports
        .filter_map(|port| port_number(port, NODE_PORT))
        .collect()
}

/// Keeps the node ports of ports by their names, but for those that the client gave to others.
fn keep_node_ports(service: &mut Value, old: &Value) {
    let requested = node_ports(service);
    let before: HashMap<&str, i64> = list(old, "spec.ports")
        .iter()
        .filter_map(|port| Some((text(port, "name"), port_number(port, NODE_PORT)?)))
        .collect();
    let ports = get_mut(service, "spec.ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if port_number(port, NODE_PORT).is_none()
            && let Some(number) = before.get(text(port, "name"))
            && !requested.contains(number)
        {
            set(port, NODE_PORT, json!(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_type_alone_has_goes_with_it() {
        let old = json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 30_001,
            "allocateLoadBalancerNodePorts": true, "ports": [{"port": 80, "nodePort": 30_000}]}});
        let mut inside = old.clone();
        set(&mut inside, "spec.type", json!("ClusterIP"));
        drop_what_no_longer_applies(&mut inside, &old);
        assert_eq!(
            inside["spec"],
            json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "ports": [{"port": 80}]})
        );
        let mut elsewhere = inside.clone();
        set(&mut elsewhere, "spec.type", json!("ExternalName"));
        let mut moved = elsewhere.clone();
        set(&mut moved, "spec.clusterIPs", json!(["10.0.0.2"]));
        drop_what_no_longer_applies(&mut moved, &inside);
        assert_eq!(moved["spec"]["clusterIP"], "10.0.0.1");
        drop_what_no_longer_applies(&mut elsewhere, &inside);
        assert_eq!(
            elsewhere["spec"],
            json!({"type": "ExternalName", "ports": [{"port": 80}]})
        );
    }

    #[test]
    fn node_ports_go_with_the_type_unless_the_client_asks_for_new_ones() {
        let old = json!({"spec": {"type": "NodePort", "ports": [
            {"name": "a", "port": 80, "nodePort": 30_000}, {"name": "b", "port": 81, "nodePort": 30_001}]}});
        let inside = |ports: Value| {
            let mut new = json!({"spec": {"type": "ClusterIP", "ports": ports}});
            drop_what_no_longer_applies(&mut new, &old);
            new["spec"]["ports"].take()
        };
        let exchanged = json!([{"name": "a", "port": 80, "nodePort": 30_001}, {"name": "b", "port": 81, "nodePort": 30_000}]);
        let none = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
        assert_eq!(inside(exchanged), none);
        let fewer = json!([{"name": "a", "port": 80, "nodePort": 30_000}]);
        assert_eq!(inside(fewer), json!([{"name": "a", "port": 80}]));
        let more =
            json!([{"name": "a", "port": 80, "nodePort": 30_000}, {"name": "c", "port": 82}]);
        assert_eq!(
            inside(more),
            json!([{"name": "a", "port": 80}, {"name": "c", "port": 82}])
        );
        let new = json!([{"name": "a", "port": 80, "nodePort": 30_002}]);
        assert_eq!(inside(new.clone()), new, "validation refuses it");
    }

    #[test]
    fn what_was_given_stays_where_it_is_left_out() {
        let old = json!({"spec": {"type": "NodePort", "clusterIP": "10.0.0.1",
            "ports": [{"name": "a", "port": 80, "nodePort": 30_000}, {"name": "b", "port": 81, "nodePort": 30_001}]}});
        let kept = |ports: Value| {
            let mut new = json!({"spec": {"type": "NodePort", "ports": ports}});
            keep_assigned(&mut new, &old);
            assert_eq!(new["spec"]["clusterIP"], "10.0.0.1");
            new["spec"]["ports"].take()
        };
        assert_eq!(
            kept(json!([{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30_000}])),
            json!([{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30_000}]),
            "the number is another's now"
        );
        assert_eq!(
            kept(json!([{"name": "a", "port": 90, "nodePort": 0}, {"name": "c", "port": 81}])),
            json!([{"name": "a", "port": 90, "nodePort": 30_000}, {"name": "c", "port": 81}]),
            "by the names, whatever the numbers"
        );
        let mut new = json!({"spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
            "ports": [{"name": "a", "port": 80}]}});
        keep_assigned(&mut new, &old);
        assert_eq!(new["spec"]["ports"], json!([{"name": "a", "port": 80}]));
    }

    #[test]
    fn external_services_have_no_internal_policy_and_no_balancer() {
        let old = json!({"spec": {"type": "LoadBalancer", "internalTrafficPolicy": "Local"}});
        let mut new = json!({"spec": {"type": "ExternalName", "internalTrafficPolicy": "Local"},
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        drop_what_no_longer_applies(&mut new, &old);
        drop_internal_policy(&mut new);
        assert_eq!(
            new,
            json!({"spec": {"type": "ExternalName"}, "status": {"loadBalancer": {}}})
        );
        let odd = json!({"spec": {"type": "ExternalName", "internalTrafficPolicy": "Odd"}});
        let mut judged = odd.clone();
        drop_internal_policy(&mut judged);
        assert_eq!(judged, odd, "validation refuses it");
    }
}
