//! The group `networking.k8s.io`: Ingresses, NetworkPolicies, IPAddresses and ServiceCIDRs.

mod addresses;
pub(crate) mod defaults;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::{Value, json};

use super::core::pod::warnings;
use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup};
use super::validation::{Field, address_warnings, ingress_points};

const V1: RowGroup = RowGroup::new("networking.k8s.io", "v1");

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        V1.cluster("ingressclasses", "IngressClass").strategy(
            Generic::new()
                .names_on_update()
                .defaults(defaults::INGRESS_CLASS)
                .check(validation::ingress_class)
                .check_on_update(validation::ingress_class_update)
                .changes_first()
                .generation(&["spec"]),
        ),
        V1.namespaced("ingresses", "Ingress")
            .short(&["ing"])
            .prefix("ingress")
            .status()
            .strategy(
                Generic::with_status()
                    .names_on_update()
                    .initial_status(json!({"loadBalancer": {}}))
                    .part("status", ingress_points::status(ingress_points::of_ingress))
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
                    .hooks(NetworkPolicies)
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

/// The behaviour of NetworkPolicies: warnings about blocks that are not canonical. Follows `networkPolicyWarnings`.
#[derive(Debug)]
struct NetworkPolicies;

impl KindHooks for NetworkPolicies {
    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        let policy = Field::root(object);
        for (rules, peers) in [("spec.ingress", "from"), ("spec.egress", "to")] {
            for rule in policy.items(rules) {
                for peer in rule.items(peers) {
                    let block = peer.at("ipBlock");
                    address_warnings::cidr(&block.at("cidr"), &mut warnings);
                    for except in block.items("except") {
                        address_warnings::cidr(&except, &mut warnings);
                    }
                }
            }
        }
        warnings
    }
}
