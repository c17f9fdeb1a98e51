//! The group `networking.k8s.io`: Ingresses, NetworkPolicies, IPAddresses and ServiceCIDRs.

mod addresses;
pub(crate) mod defaults;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::json;

use super::core::pod::warnings;

use super::strategy::generic::Generic;
use super::strategy::row::{Group, Row};
use super::validation::ingress_points;

const V1: Group = Group::new("networking.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.cluster("ingressclasses", "IngressClass").strategy(
            Generic::new()
                .defaults(defaults::INGRESS_CLASS)
                .check(validation::ingress_class)
                .check_on_update(validation::ingress_class_update)
                .generation(&["spec"]),
        ),
        V1.namespaced("ingresses", "Ingress")
            .short(&["ing"])
            .prefix("ingress")
            .status()
            .strategy(
                Generic::with_status()
                    .initial_status(json!({"loadBalancer": {}}))
                    .status_update(SubresourceMetadata::Free, ingress_points::of_ingress)
                    .defaults(defaults::INGRESS)
                    .check(validation::ingress)
                    .warn(warnings::ingress)
                    .check_on_create(validation::new_ingress)
                    .generation(&["spec"]),
            ),
        V1.cluster("ipaddresses", "IPAddress")
            .short(&["ip"])
            .strategy(
                Generic::new()
                    .name_rule(NameRule::PathSegment)
                    .check(addresses::ip_address)
                    .check_on_update(addresses::ip_address_update),
            ),
        V1.namespaced("networkpolicies", "NetworkPolicy")
            .short(&["netpol"])
            .strategy(
                Generic::new()
                    .defaults(defaults::NETWORK_POLICY)
                    .check_on_create(validation::new_network_policy)
                    .check_on_update(validation::network_policy_update)
                    .generation(&["spec"]),
            ),
        V1.cluster("servicecidrs", "ServiceCIDR").status().strategy(
            Generic::with_status()
                .status_metadata(SubresourceMetadata::KeepsAll)
                .check_on_create(addresses::service_cidr)
                .check_on_update(addresses::service_cidr_update),
        ),
    ]
}
