//! Checks of EndpointSlices and Endpoints.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ringwatch_apimachinery::validation::formats;
use serde_json::Map;

use crate::validation::address_warnings;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::labels;
use crate::validation::values::{PROTOCOLS, address, canonical_ip, ip, ordinary_address};

const ADDRESS_TYPES: &[&str] = &["FQDN", "IPv4", "IPv6"];
/// Maximum numbers of the endpoints of a slice, of the addresses of each, and of the ports.
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
/// Maximum numbers of the labels of an endpoint's topology, and of the zones and of the nodes that it is meant for.
const TOPOLOGY_MAX: usize = 16;
const HINTS_MAX: usize = 8;

/// Checks Endpoints. Follows `ValidateEndpoints` in pkg/apis/core/validation.
pub(crate) fn endpoints(object: &Field<'_, '_>, errors: &mut Errors) {
    for subset in object.items("subsets") {
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| subset.at(list).is_empty()) {
            let why = "must specify `addresses` or `notReadyAddresses`";
            errors.push(subset.required(why));
        }
        for list in lists {
            for one in subset.items(list) {
                one.at("ip").must_conform(ip, errors);
                one.at("hostname").may_conform(formats::dns_label, errors);
                if one.at("nodeName").is_set() {
                    one.at("nodeName")
                        .must_conform(formats::dns_subdomain, errors);
                }
                ordinary_address(&one.at("ip"), errors);
            }
        }
        let many = subset.at("ports").len() > 1;
        for port in subset.items("ports") {
            let name = port.at("name");
            if many {
                name.must_be_set(errors);
            }
            name.may_conform(formats::dns_label, errors);
            port.at("port").must_be_a_port(errors);
            port.at("protocol").must_be_one_of(PROTOCOLS, errors);
            app_protocol(&port, errors);
        }
    }
}

/// Checks an update of Endpoints: subsets that do not change are not checked. Follows `ValidateEndpointsUpdate` in
/// pkg/apis/core/validation.
pub(crate) fn endpoints_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    if object.at("subsets").value() != old.at("subsets").value() {
        endpoints(object, errors);
    }
}

/// The label of Endpoints that tells what keeps them, and the controller that writes canonical addresses.
const MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");

/// Adds the warnings about addresses that are not canonical. Follows `endpointsWarnings`.
pub(crate) fn warn_of_addresses(object: &Field<'_, '_>, warnings: &mut Vec<String>) {
    let (label, controller) = MANAGED_BY;
    if object.at("metadata.labels").value()[label] == controller {
        return;
    }
    for subset in object.items("subsets") {
        for list in ["addresses", "notReadyAddresses"] {
            for address in subset.items(list) {
                address_warnings::ip(&address.at("ip"), warnings);
            }
        }
    }
}

/// Checks an EndpointSlice but for its endpoints. Follows `ValidateEndpointSlice` in pkg/apis/discovery/validation.
pub(crate) fn slice(object: &Field<'_, '_>, errors: &mut Errors) {
    object
        .at("addressType")
        .must_be_one_of(ADDRESS_TYPES, errors);
    if too_many(&object.at("ports"), PORTS_MAX, errors) {
        return;
    }
    let mut names = BTreeSet::new();
    for port in object.items("ports") {
        let name = port.at("name");
        name.may_conform(formats::dns_label, errors);
        if !names.insert(name.text()) {
            errors.push(name.duplicate());
        }
        port.at("protocol").must_point_to_one_of(PROTOCOLS, errors);
        app_protocol(&port, errors);
    }
}

/// Checks an update of an EndpointSlice: its address type is immutable, and endpoints that do not change are not
/// checked. Follows `ValidateEndpointSliceUpdate` in pkg/apis/discovery/validation.
pub(crate) fn slice_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    if object.at("endpoints").value() != old.at("endpoints").value() {
        slice_endpoints(object, errors);
    }
    let kind = object.at("addressType");
    kind.must_stay_text(&old.at("addressType"), errors);
}

/// Checks the endpoints of an EndpointSlice. Follows `validateEndpoints` in pkg/apis/discovery/validation.
pub(crate) fn slice_endpoints(object: &Field<'_, '_>, errors: &mut Errors) {
    let kind = object.at("addressType");
    let endpoints = object.at("endpoints");
    if too_many(&endpoints, ENDPOINTS_MAX, errors) {
        return;
    }
    for endpoint in endpoints.items("") {
        let addresses = endpoint.at("addresses");
        if addresses.is_empty() {
            errors.push(addresses.required("must contain at least 1 address"));
        }
        too_many(&addresses, ADDRESSES_MAX, errors);
        for one in addresses.items("") {
            endpoint_address(&one, kind.text(), errors);
        }
        if endpoint.at("nodeName").is_set() {
            endpoint
                .at("nodeName")
                .must_conform(formats::dns_subdomain, errors);
        }
        let topology = endpoint.at("deprecatedTopology");
        let keys = topology.value().as_object().map_or(0, Map::len);
        if keys > TOPOLOGY_MAX {
            errors.push(topology.too_many(keys, TOPOLOGY_MAX));
        }
        labels(&topology, errors);
        if endpoint.at("hostname").is_set() {
            endpoint
                .at("hostname")
                .must_conform(formats::dns_label, errors);
        }
        hints(&endpoint.at("hints"), errors);
    }
}

/// Checks the zones and nodes for which an endpoint is meant. Follows `validateHints` in pkg/apis/discovery/validation.
fn hints(hints: &Field<'_, '_>, errors: &mut Errors) {
    let (zones, nodes) = (hints.at("forZones"), hints.at("forNodes"));
    if too_many(&zones, HINTS_MAX, errors) {
        return;
    }
    hinted_names(&zones, formats::label_value, errors);
    if !too_many(&nodes, HINTS_MAX, errors) {
        hinted_names(&nodes, formats::dns_subdomain, errors);
    }
}

fn hinted_names(list: &Field<'_, '_>, format: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for one in list.items("") {
        let name = one.at("name");
        if !names.insert(name.text()) {
            errors.push(name.duplicate_of(name.text()));
        }
        name.must_conform(format, errors);
    }
}

fn endpoint_address(at: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    let fits: fn(&IpAddr) -> bool = match kind {
        "IPv4" => IpAddr::is_ipv4,
        "IPv6" => IpAddr::is_ipv6,
        "FQDN" => {
            domain_name(at, errors);
            return;
        }
        _ => return,
    };
    let wrong = match kind {
        "IPv4" => ip(at.text()),
        _ => canonical_ip(at.text()),
    };
    if !wrong.is_empty() {
        errors.extend(wrong.into_iter().map(|why| at.invalid(why)));
        return;
    }
    if !address(at.text()).as_ref().is_some_and(fits) {
        let mut error = at.invalid(format!("must be an {kind} address"));
        // Kubernetes names the list.
        if let Some(list) = error.field.rfind('[') {
            error.field.truncate(list);
        }
        errors.push(error);
    }
    ordinary_address(at, errors);
}

/// Follows `IsFullyQualifiedDomainName` in apimachinery's pkg/util/validation.
fn domain_name(at: &Field<'_, '_>, errors: &mut Errors) {
    if at.is_empty() {
        errors.push(at.required(""));
        return;
    }
    let text = at.text();
    let name = text.strip_suffix('.').unwrap_or(text);
    let wrong = formats::dns_subdomain(name);
    if !wrong.is_empty() {
        errors.push(at.invalid_value(name, wrong.join(",")));
    } else if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(at.invalid_value(name, why));
    } else {
        let labels = name.split('.').map(|one| (one, formats::dns_label(one)));
        if let Some((label, wrong)) = labels.into_iter().find(|(_, wrong)| !wrong.is_empty()) {
            errors.push(at.invalid_value(label, wrong.join(",")));
        }
    }
}

fn app_protocol(port: &Field<'_, '_>, errors: &mut Errors) {
    if port.at("appProtocol").is_set() {
        port.at("appProtocol")
            .must_conform(formats::label_key, errors);
    }
}

/// Adds an error if the list is too long, and says so.
fn too_many(list: &Field<'_, '_>, most: usize, errors: &mut Errors) -> bool {
    let is_too_long = list.len() > most;
    if is_too_long {
        errors.push(list.too_many(list.len(), most));
    }
    is_too_long
}
