//! The group `networking.k8s.io`: Ingresses, NetworkPolicies, IPAddresses and ServiceCIDRs.

mod addresses;
pub(crate) mod defaults;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_apimachinery::NameRule;
use ringwatch_registry::subresource::SubresourceMetadata;
use serde_json::{Value, json};

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
                    .check_on_create(validation::ingress)
                    .check_on_update(validation::ingress_update)
                    .warn(warn_of_class)
                    .generation(&["spec"]),
            ),
        V1.cluster("ipaddresses", "IPAddress")
            .short(&["ip"])
            .strategy(
                Generic::new()
                    .name_rule(NameRule::OfKind)
                    .names_on_update()
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
                .judged_if_empty(&["spec.cidrs"])
                .check_on_create(addresses::service_cidr)
                .check_on_update(addresses::service_cidr_update),
        ),
    ]
}

/// The annotation that named the class of an Ingress before there was the field.
const OLD_INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Warns of a class that a new Ingress names by the annotation alone.
fn warn_of_class(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let annotations = object.at("metadata.annotations");
    let is_annotated = annotations.value().get(OLD_INGRESS_CLASS).is_some();
    if is_annotated && !object.at("spec.ingressClassName").is_set() {
        warnings.push(format!(
            "annotation {OLD_INGRESS_CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"
        ));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_only_an_annotation_names_is_told() {
        let told = |spec: Value| {
            let ingress =
                json!({"metadata": {"annotations": {OLD_INGRESS_CLASS: "nginx"}}, "spec": spec});
            let mut warnings = Vec::new();
            warn_of_class(&Field::root(&ingress), &mut warnings);
            warnings
        };
        assert_eq!(
            told(json!({})),
            [
                "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"
            ]
        );
        assert_eq!(told(json!({"ingressClassName": "nginx"})), [""; 0]);
    }
}
