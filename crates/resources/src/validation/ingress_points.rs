//! The points at which load balancers take traffic, in the statuses of Ingresses and Services.
//!
//! Follows pkg/apis/networking/validation/validation.go and pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::validation::formats::dns_subdomain;
use ringwatch_registry::subresource::{SubresourceMetadata, SubresourceStrategy};
use serde_json::Value;

use crate::validation::address_warnings;
use crate::validation::field::{Errors, Field};
use crate::validation::values::{address, ip};

const POINTS: &str = "status.loadBalancer.ingress";
const OF_OTHER_TYPES: &str = "may only be used when `spec.type` is 'LoadBalancer'";
const IP_MODES: &[&str] = &["Proxy", "VIP"];

/// Checks an update of the status of an Ingress. Follows `ValidateIngressStatusUpdate`.
pub(crate) fn of_ingress(ingress: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    points(
        &Field::root(ingress),
        &Field::root(old),
        |_, _| {},
        &mut errors,
    );
    errors
}

/// Checks an update of the status of a Service: only one of type LoadBalancer has such points. Follows
/// `ValidateServiceStatusUpdate`.
pub(crate) fn of_service(service: &Value, old: &Value) -> Errors {
    let (service, old) = (Field::root(service), Field::root(old));
    let mut errors = Errors::new();
    let all = service.at(POINTS);
    if service.at("spec.type").text() != "LoadBalancer" && !all.is_empty() {
        errors.push(all.forbidden(OF_OTHER_TYPES));
        return errors;
    }
    points(&service, &old, ip_mode, &mut errors);
    errors
}

/// Returns the strategy of the status of a kind, which a write checks so.
pub(crate) fn status(check: fn(&Value, &Value) -> Errors) -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::Free)
        .validate_update(check)
        .warn(warnings)
}

/// Returns the warnings about addresses that are not canonical, which tell the point alone.
fn warnings(object: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for point in Field::root(object).items(POINTS) {
        address_warnings::ip_at(point.at("ip").text(), &point.field(), &mut warnings);
    }
    warnings
}

/// Checks each point: an address that the old object does not have, what `more` looks at, and the name of a host.
fn points(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    more: fn(&Field<'_, '_>, &mut Errors),
    errors: &mut Errors,
) {
    let known: HashSet<&str> = old.items(POINTS).map(|it| it.at("ip").text()).collect();
    for point in object.items(POINTS) {
        let address_of = point.at("ip");
        if !known.contains(address_of.text()) {
            address_of.may_conform(ip, errors);
        }
        more(&point, errors);
        let host = point.at("hostname");
        host.may_conform(dns_subdomain, errors);
        if address(host.text()).is_some() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
    }
}

/// Checks that a point of a Service has a mode if and only if it has an address.
fn ip_mode(point: &Field<'_, '_>, errors: &mut Errors) {
    let mode = point.at("ipMode");
    match (mode.is_set(), !point.at("ip").is_empty()) {
        (false, true) => errors.push(mode.required("must be specified when `ip` is set")),
        (true, false) => {
            errors.push(mode.forbidden("may not be specified when `ip` is not set"));
        }
        _ => mode.may_be_one_of(IP_MODES, errors),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    #[test]
    fn traffic_comes_in_at_addresses_and_names() {
        const NO_IP: &str = "status.loadBalancer.ingress[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        const IP_NAME: &str = "status.loadBalancer.ingress[0].hostname: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address";
        let with = |point: Value| json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [point]}}});
        let old = with(json!({"ip": "old"}));
        for (point, of_ingress_, of_service_) in [
            (json!({"ip": "1.2.3.4", "ipMode": "VIP"}), vec![], vec![]),
            (json!({"ip": "old", "ipMode": "Proxy"}), vec![], vec![]),
            (json!({"hostname": "a.example.com"}), vec![], vec![]),
            (
                json!({"ip": "x", "ipMode": "VIP"}),
                vec![NO_IP],
                vec![NO_IP],
            ),
            (json!({"hostname": "1.2.3.4"}), vec![IP_NAME], vec![IP_NAME]),
            (
                json!({"ip": "1.2.3.4"}),
                vec![],
                vec![
                    "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set",
                ],
            ),
            (
                json!({"hostname": "a", "ipMode": "VIP"}),
                vec![],
                vec![
                    "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set",
                ],
            ),
            (
                json!({"ip": "1.2.3.4", "ipMode": "Odd"}),
                vec![],
                vec![
                    "status.loadBalancer.ingress[0].ipMode: Unsupported value: \"Odd\": supported values: \"Proxy\", \"VIP\"",
                ],
            ),
        ] {
            let object = with(point);
            assert_eq!(
                messages(&of_ingress(&object, &old)),
                of_ingress_,
                "{object}"
            );
            assert_eq!(
                messages(&of_service(&object, &old)),
                of_service_,
                "{object}"
            );
        }
        let mut inside = with(json!({"ip": "1.2.3.4"}));
        inside["spec"]["type"] = json!("ClusterIP");
        assert_eq!(
            messages(&of_service(&inside, &old)),
            [
                "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"
            ]
        );
    }
}
