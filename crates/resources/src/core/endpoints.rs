//! Checks of EndpointSlices and Endpoints.

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};

use crate::validation::field::{Errors, Field};
use crate::validation::values::{PROTOCOLS, address, ip, ordinary_address};

const ADDRESS_TYPES: &[&str] = &["FQDN", "IPv4", "IPv6"];
/// Maximum numbers of the endpoints of a slice, of the addresses of each, and of the ports.
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;

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

/// Checks an EndpointSlice. Follows `ValidateEndpointSlice` in pkg/apis/discovery/validation.
pub(crate) fn slice(object: &Field<'_, '_>, errors: &mut Errors) {
    let kind = object.at("addressType");
    kind.must_be_one_of(ADDRESS_TYPES, errors);
    too_many(&object.at("endpoints"), ENDPOINTS_MAX, errors);
    for endpoint in object.items("endpoints") {
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
        if endpoint.at("hostname").is_set() {
            endpoint
                .at("hostname")
                .must_conform(formats::dns_label, errors);
        }
    }
    too_many(&object.at("ports"), PORTS_MAX, errors);
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

/// Checks an update of an EndpointSlice: its address type is immutable. Follows `ValidateEndpointSliceUpdate` in
/// pkg/apis/discovery/validation.
pub(crate) fn slice_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    object
        .at("addressType")
        .must_stay(&old.at("addressType"), errors);
}

fn endpoint_address(at: &Field<'_, '_>, kind: &str, errors: &mut Errors) {
    let found = address(at.text());
    let fits = match kind {
        "IPv4" => found.is_some_and(|ip| ip.is_ipv4()),
        "IPv6" => found.is_some_and(|ip| ip.is_ipv6()),
        "FQDN" => {
            at.must_conform(formats::dns_subdomain, errors);
            return;
        }
        _ => return,
    };
    if fits {
        ordinary_address(at, errors);
    } else {
        errors.push(at.invalid(format!("must be a valid {kind} address")));
    }
}

fn app_protocol(port: &Field<'_, '_>, errors: &mut Errors) {
    if port.at("appProtocol").is_set() {
        port.at("appProtocol")
            .must_conform(formats::label_key, errors);
    }
}

fn too_many(list: &Field<'_, '_>, most: usize, errors: &mut Errors) {
    if list.len() > most {
        let why = format!("{}: must have at most {most} items", list.len());
        errors.push(FieldError::new(FieldErrorKind::TooMany, list.field(), why));
    }
}
