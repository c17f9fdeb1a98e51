//! The group `discovery.k8s.io`: EndpointSlices.

use serde_json::Value;

use super::core::endpoints::{slice, slice_endpoints, slice_update};
use super::networking::defaults;
use super::strategy::generic::Generic;
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup};
use super::validation::{Field, address_warnings};

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("discovery.k8s.io", "v1")
            .namespaced("endpointslices", "EndpointSlice")
            .strategy(
                Generic::new()
                    .defaults(defaults::ENDPOINT_SLICE)
                    .check(slice)
                    .check_on_create(slice_endpoints)
                    .check_on_update(slice_update)
                    .warn(warn_of_names)
                    .managed_if_empty(&["endpoints", "ports"])
                    .hooks(EndpointSlices)
                    .generation(&["addressType", "endpoints", "ports", "metadata.labels"]),
            ),
    ]
}

/// Warns of slices of names (`warnOnDeprecatedAddressType` of `registry/discovery/endpointslice/strategy.go`, 1.36).
fn warn_of_names(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    if object.at("addressType").text() == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
}

/// The label of a slice that tells what keeps it.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The controllers that write canonical addresses.
const CONTROLLERS: [&str; 2] = [
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];

/// The behaviour of EndpointSlices: warnings about addresses that are not canonical. Follows `warnOnBadIPs`.
#[derive(Debug)]
struct EndpointSlices;

impl KindHooks for EndpointSlices {
    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        let manager = object["metadata"]["labels"][MANAGED_BY].as_str();
        if manager.is_some_and(|it| CONTROLLERS.contains(&it)) {
            return warnings;
        }
        for endpoint in Field::root(object).items("endpoints") {
            for address in endpoint.items("addresses") {
                address_warnings::ip(&address, &mut warnings);
            }
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_that_no_controller_wrote_are_looked_at() {
        let slice = |manager: &str| {
            json!({"metadata": {"labels": {MANAGED_BY: manager}},
                "endpoints": [{"addresses": ["fd00::1", "010.0.0.1"]}]})
        };
        let told = r#"endpoints[0].addresses[1]: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1""#;
        assert_eq!(EndpointSlices.warnings(&slice("me"), None), [told]);
        for manager in CONTROLLERS {
            assert!(EndpointSlices.warnings(&slice(manager), None).is_empty());
        }
    }
}
