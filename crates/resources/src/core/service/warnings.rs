//! The warnings about a Service that is accepted.

use super::validation::{OLD_TOPOLOGY, TOPOLOGY_MODE};
use crate::validation::address_warnings;
use crate::validation::field::Field;

/// Adds the warnings about a Service. Follows `GetWarningsForService`.
pub(crate) fn service(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let spec = object.at("spec");
    let annotations = object.at("metadata.annotations").value();
    if annotations.get(OLD_TOPOLOGY).is_some() {
        warnings.push(format!(
            "annotation {OLD_TOPOLOGY} is deprecated, please use {TOPOLOGY_MODE} instead"
        ));
    }
    let external = spec.at("type").text() == "ExternalName";
    let cluster_ip = spec.at("clusterIP").text();
    if !matches!(cluster_ip, "" | "None") {
        for ip in spec.items("clusterIPs") {
            address_warnings::ip(&ip, warnings);
        }
    }
    let headless = spec.at("type").text() == "ClusterIP" && cluster_ip == "None";
    if headless {
        for ignored in ["loadBalancerIP", "externalIPs"] {
            if !spec.at(ignored).is_empty() {
                warnings.push(format!("spec.{ignored} is ignored for headless services"));
            }
        }
        if spec.at("sessionAffinity").text() == "ClientIP" {
            warnings.push("spec.SessionAffinity is ignored for headless services".into());
        }
    }
    for ip in spec.items("externalIPs") {
        address_warnings::ip(&ip, warnings);
    }
    if !headless && !external && !spec.at("externalIPs").is_empty() {
        warnings.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .into(),
        );
    }
    address_warnings::ip(&spec.at("loadBalancerIP"), warnings);
    for range in spec.items("loadBalancerSourceRanges") {
        address_warnings::cidr(&range, warnings);
    }
    if external && !spec.at("externalIPs").is_empty() {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".into());
    }
    if !external && !spec.at("externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".into());
    }
    if spec.at("trafficDistribution").text() == "PreferClose" {
        warnings.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""
                .into(),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn warnings_of(service: &Value) -> Vec<String> {
        let mut warnings = Vec::new();
        super::service(&Field::root(service), &mut warnings);
        warnings
    }

    #[test]
    fn what_is_not_canonical_deprecated_or_ignored_is_told() {
        let told = |field: &str| {
            format!(
                "{field}: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")"
            )
        };
        let service = json!({"spec": {"type": "LoadBalancer", "clusterIP": "FD00::1", "clusterIPs": ["FD00::1"],
            "externalIPs": ["FD00::1"], "loadBalancerIP": "FD00::1", "loadBalancerSourceRanges": ["10.0.0.1/8"],
            "trafficDistribution": "PreferClose"}});
        assert_eq!(
            warnings_of(&service),
            [
                told("spec.clusterIPs[0]"),
                told("spec.externalIPs[0]"),
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
                told("spec.loadBalancerIP"),
                "spec.loadBalancerSourceRanges[0]: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)".to_owned(),
                "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
            ]
        );
        let headless = json!({"spec": {"type": "ClusterIP", "clusterIP": "None", "externalIPs": ["10.0.0.1"],
            "loadBalancerIP": "10.0.0.1"}});
        assert_eq!(
            warnings_of(&headless),
            [
                "spec.loadBalancerIP is ignored for headless services",
                "spec.externalIPs is ignored for headless services",
            ]
        );
        let headless = json!({"spec": {"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP"}});
        assert_eq!(
            warnings_of(&headless),
            ["spec.SessionAffinity is ignored for headless services"]
        );
    }
}
