//! The address and the ports of a pod behind a Service.

use std::net::IpAddr;

use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::path;
use serde_json::{Value, json};

use crate::pods;

/// A family of IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AddressFamily {
    V4,
    V6,
}

impl AddressFamily {
    pub(super) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Returns the name of the family, which is the type of addresses in EndpointSlices.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// Returns the family of an address.
    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the families of a Service, the main one first.
    pub(super) fn of_service(service: &Value) -> Vec<Self> {
        let named = path::list(service, "spec.ipFamilies").iter();
        let families: Vec<Self> = named
            .filter_map(|name| Self::ALL.into_iter().find(|it| *name == it.name()))
            .collect();
        if families.is_empty() {
            let address = path::text(service, "spec.clusterIP").parse();
            return vec![address.map_or(Self::V4, Self::of)];
        }
        families
    }
}

/// Returns true if a pod may be behind a Service: it has an address, and has not ended.
pub(super) fn is_reachable(pod: &Value) -> bool {
    !pods::has_ended(pod) && !addresses(pod).is_empty()
}

/// Returns the address of a pod in a family, in the usual form; `None` if it has none.
pub(super) fn address(pod: &Value, family: AddressFamily) -> Option<String> {
    let addresses = addresses(pod).into_iter();
    let mut addresses = addresses.filter_map(|it| it.parse::<IpAddr>().ok());
    let address = addresses.find(|it| AddressFamily::of(*it) == family)?;
    Some(address.to_string())
}

/// Returns the addresses of a pod.
pub(super) fn addresses(pod: &Value) -> Vec<&str> {
    let all = path::list(pod, "status.podIPs").iter();
    let all: Vec<&str> = all.filter_map(|it| it["ip"].as_str()).collect();
    let single = path::text(pod, "status.podIP");
    if all.is_empty() && !single.is_empty() {
        return vec![single];
    }
    all
}

/// Returns the port of a pod to which a port of a Service leads; `None` if it has none of the name.
pub(super) fn port_number(pod: &Value, service_port: &Value) -> Option<i64> {
    let target = &service_port["targetPort"];
    let Some(name) = target.as_str() else {
        return target.as_i64();
    };
    let inits = path::list(pod, "spec.initContainers").iter();
    let sidecars = inits.filter(|it| it["restartPolicy"] == "Always");
    let containers = path::list(pod, "spec.containers").iter().chain(sidecars);
    let mut ports = containers.flat_map(|it| path::list(it, "ports"));
    let port = ports.find(|it| it["name"] == name && protocol(it) == protocol(service_port))?;
    port["containerPort"].as_i64()
}

fn protocol(port: &Value) -> &str {
    port["protocol"].as_str().unwrap_or("TCP")
}

/// Returns the ports of a pod to which those of a Service lead, as Endpoints and EndpointSlices have them.
pub(super) fn ports(pod: &Value, service: &Value) -> Vec<Value> {
    let ports = path::list(service, "spec.ports").iter();
    let ports = ports.filter_map(|service_port| {
        let number = port_number(pod, service_port)?;
        let mut port = json!({
            "name": service_port["name"].as_str().unwrap_or_default(),
            "port": number,
            "protocol": protocol(service_port),
        });
        if service_port["appProtocol"].is_string() {
            port["appProtocol"] = service_port["appProtocol"].clone();
        }
        Some(port)
    });
    ports.collect()
}

/// Returns true if a Service has no address of its own.
pub(super) fn is_headless(service: &Value) -> bool {
    matches!(path::text(service, "spec.clusterIP"), "" | "None")
}

/// Returns the name by which a Service gives a pod to those that ask for names; `None` if the pod has none there.
pub(super) fn host_name<'a>(pod: &'a Value, service: &Value) -> Option<&'a str> {
    let name = path::text(pod, "spec.hostname");
    let is_within = path::text(pod, "spec.subdomain") == accessor::text(service, "name");
    (!name.is_empty() && is_within).then_some(name)
}

/// Returns the reference to a pod.
pub(super) fn reference(pod: &Value) -> Value {
    json!({
        "kind": "Pod",
        "namespace": pod["metadata"]["namespace"],
        "name": pod["metadata"]["name"],
        "uid": pod["metadata"]["uid"],
    })
}

/// Returns true if a Service publishes pods that are not ready.
pub(super) fn publishes_all(service: &Value) -> bool {
    path::get(service, "spec.publishNotReadyAddresses") == Some(&Value::Bool(true))
}

/// Returns the conditions of a pod behind a Service, as EndpointSlices have them.
pub(super) fn conditions(pod: &Value, service: &Value) -> Value {
    let (is_serving, is_terminating) = (pods::is_ready(pod), is_terminating(pod));
    json!({
        "ready": publishes_all(service) || (is_serving && !is_terminating),
        "serving": is_serving,
        "terminating": is_terminating,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_ports_are_looked_up_in_containers_and_in_those_beside_them() {
        let pod = json!({"spec": {
            "containers": [{"ports": [
                {"name": "web", "containerPort": 80, "protocol": "UDP"},
                {"name": "web", "containerPort": 8080, "protocol": "TCP"},
            ]}],
            "initContainers": [
                {"ports": [{"name": "first", "containerPort": 1, "protocol": "TCP"}]},
                {"restartPolicy": "Always", "ports": [{"name": "beside", "containerPort": 2, "protocol": "TCP"}]},
            ],
        }});
        let number =
            |target: Value| port_number(&pod, &json!({"targetPort": target, "protocol": "TCP"}));
        assert_eq!(number(json!(5)), Some(5));
        assert_eq!(number(json!("web")), Some(8080));
        assert_eq!(number(json!("beside")), Some(2));
        assert_eq!(number(json!("first")), None);
    }

    #[test]
    fn a_pod_has_an_address_in_each_family_until_it_has_ended() {
        let mut pod = json!({"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "FD00::1"}]}});
        assert_eq!(
            address(&pod, AddressFamily::V4).as_deref(),
            Some("10.0.0.1")
        );
        assert_eq!(address(&pod, AddressFamily::V6).as_deref(), Some("fd00::1"));
        assert!(is_reachable(&pod));
        pod["status"]["phase"] = "Succeeded".into();
        assert!(!is_reachable(&pod));
    }
}
