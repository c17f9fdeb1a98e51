//! The group `discovery.k8s.io`: EndpointSlices.

use ringwatch_apimachinery::path::{get_mut, list, set};
use ringwatch_apimachinery::validation::formats;
use ringwatch_registry::RequestContext;
use serde_json::{Value, json};

use super::core::endpoints::{slice, slice_endpoints, slice_update};
use super::networking::defaults;
use super::strategy::generic::{Generic, count_generation};
use super::strategy::kind_hooks::KindHooks;
use super::strategy::row::{RowBuilder, RowGroup};
use super::validation::{Field, address_warnings};

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        RowGroup::new("discovery.k8s.io", "v1")
            .namespaced("endpointslices", "EndpointSlice")
            .strategy(
                Generic::new()
                    .names_on_update()
                    .defaults(defaults::ENDPOINT_SLICE)
                    .check(slice)
                    .check_on_create(slice_endpoints)
                    .check_on_update(slice_update)
                    .warn(warn_of_names)
                    .managed_if_empty(&["endpoints", "ports"])
                    .hooks(EndpointSlices),
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

/// The members whose changes the generation counts.
const COUNTED: &[&str] = &["addressType", "endpoints", "ports", "metadata.labels"];
/// The member of endpoints that only an older version has, and the key in it for the name of the node.
const TOPOLOGY: &str = "deprecatedTopology";
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The behaviour of EndpointSlices: the topology of endpoints is not written, though it counts as a change, and
/// addresses that are not canonical are warned of. Follows `dropTopologyOnV1` and `warnOnBadIPs`.
#[derive(Debug)]
struct EndpointSlices;

impl KindHooks for EndpointSlices {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        set(object, "metadata.generation", json!(1));
        drop_topology(object, &Value::Null);
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        count_generation(object, old, COUNTED);
        if object["endpoints"] != old["endpoints"] {
            drop_topology(object, old);
        }
    }

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

/// Drops the topology of all endpoints. An endpoint without a name of a node gets that in its topology, if a topology
/// of the old slice has it as well.
fn drop_topology(slice: &mut Value, old: &Value) {
    let known: Vec<&str> = list(old, "endpoints")
        .iter()
        .filter_map(|it| it[TOPOLOGY][HOSTNAME].as_str())
        .filter(|name| formats::dns_subdomain(name).is_empty())
        .collect();
    let endpoints = get_mut(slice, "endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten() {
        let Some(endpoint) = endpoint.as_object_mut() else {
            continue;
        };
        let topology = endpoint.remove(TOPOLOGY).unwrap_or_default();
        let node = topology[HOSTNAME].as_str().filter(|it| known.contains(it));
        if let Some(node) = node
            && endpoint.get("nodeName").is_none_or(Value::is_null)
        {
            endpoint.insert("nodeName".to_owned(), node.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;

    use super::*;

    #[test]
    fn the_topology_of_endpoints_counts_but_is_not_written() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let sent = json!({"metadata": {"name": "s"}, "endpoints": [
            {"addresses": ["10.0.0.1"], TOPOLOGY: {HOSTNAME: "n", "a": "b"}}]});
        let plain = json!([{"addresses": ["10.0.0.1"]}]);
        let mut created = sent.clone();
        EndpointSlices.prepare_for_create(&context, &mut created);
        assert_eq!(created["endpoints"], plain);
        let update = |old: &Value, mut new: Value| {
            EndpointSlices.prepare_for_update(&context, &mut new, old);
            (
                new["endpoints"].take(),
                new["metadata"]["generation"].take(),
            )
        };
        assert_eq!(update(&created, sent.clone()), (plain, json!(2)));
        let mut older = sent.clone();
        older["metadata"]["generation"] = json!(1);
        let kept = sent["endpoints"].clone();
        assert_eq!(update(&older, sent.clone()), (kept, json!(1)));
        let mut moved = sent.clone();
        moved["endpoints"][0]["addresses"] = json!(["10.0.0.2"]);
        let named = json!([{"addresses": ["10.0.0.2"], "nodeName": "n"}]);
        assert_eq!(update(&older, moved), (named, json!(2)));
    }

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
