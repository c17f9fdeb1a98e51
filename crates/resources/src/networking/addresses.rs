//! Checks of ServiceCIDRs and IPAddresses.
//!
//! Follows pkg/apis/networking/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::validation::formats;

use crate::validation::field::{Errors, Field};
use crate::validation::values::{canonical_cidr, canonical_ip, network};

const RANGES_MAX: usize = 2;
const IMMUTABLE: &str = "field is immutable";

/// Checks a ServiceCIDR: one range, or one of each family. Follows `ValidateServiceCIDR`.
pub(crate) fn service_cidr(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
    let ranges = spec.at("cidrs");
    let count = ranges.len();
    if count == 0 {
        errors.push(ranges.required("at least one CIDR required"));
        return;
    }
    if count > RANGES_MAX {
        // Kubernetes shows the spec.
        let why = "may only hold up to 2 values";
        errors.push(ranges.invalid_showing(&spec, spec.value(), why));
        return;
    }
    for range in ranges.items("") {
        range.must_conform(canonical_cidr, errors);
    }
    let families = ranges.items("").filter_map(|range| network(range.text()));
    let families = families.map(|(first, _)| first.to_canonical().is_ipv4());
    let families: Vec<bool> = families.collect();
    if let [first, second] = families[..]
        && first == second
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(ranges.field(), ranges.value(), why));
    }
}

/// Checks an update of a ServiceCIDR: its ranges are immutable, but one of the other family may be added. Follows
/// `ValidateServiceCIDRUpdate`.
pub(crate) fn service_cidr_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let (ranges, before) = (object.at("spec.cidrs"), old.at("spec.cidrs"));
    if ranges.len() != before.len() && (before.len(), ranges.len()) != (1, RANGES_MAX) {
        errors.push(FieldError::invalid(
            ranges.field(),
            ranges.value(),
            IMMUTABLE,
        ));
        return;
    }
    let pairs = ranges.items("").zip(before.items(""));
    let changed = pairs.filter(|(range, before)| range.text() != before.text());
    errors.extend(changed.map(|(range, _)| range.invalid(IMMUTABLE)));
    if ranges.len() > before.len() {
        service_cidr(object, errors);
    }
}

/// Checks an IPAddress: it is named by its address and has a parent. Follows `ValidateIPAddress`.
pub(crate) fn ip_address(object: &Field<'_, '_>, errors: &mut Errors) {
    // That there must be a name is said of all objects.
    for name in ["metadata.generateName", "metadata.name"] {
        object.at(name).may_conform(canonical_ip, errors);
    }
    let parent = object.at("spec.parentRef");
    if !parent.is_set() {
        errors.push(parent.required(""));
        return;
    }
    parent
        .at("group")
        .may_conform(formats::dns_subdomain, errors);
    let segment = |text: &str| formats::path_segment(text, false);
    for member in ["resource", "name"] {
        let named = parent.at(member);
        named.must_be_set_and_conform(segment, errors);
    }
    parent.at("namespace").may_conform(segment, errors);
}

/// Checks an update of an IPAddress: its parent is immutable. Follows `ValidateIPAddressUpdate`.
pub(crate) fn ip_address_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    object
        .at("spec.parentRef")
        .must_stay(&old.at("spec.parentRef"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validation::{found, messages};

    #[test]
    fn the_spec_is_shown_where_it_has_too_many_ranges() {
        let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
            "spec": {"cidrs": ["a", "b", "c"]}});
        let shown = r#"{"CIDRs":["a","b","c"]}"#;
        assert_eq!(
            messages(&found(service_cidr, &object)),
            [format!(
                "spec.cidrs: Invalid value: {shown}: may only hold up to 2 values"
            )]
        );
    }

    #[test]
    fn ranges_are_looked_at_before_their_families_are() {
        let wrong =
            |ranges: Value| messages(&found(service_cidr, &json!({"spec": {"cidrs": ranges}})));
        assert_eq!(wrong(json!(["10.0.0.0/8", "fd00::/64"])), [""; 0]);
        let malformed = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        assert_eq!(
            wrong(json!(["10.0.0.0/8", "x"])),
            [format!("spec.cidrs[1]: Invalid value: \"x\": {malformed}")]
        );
        let one_family = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        assert_eq!(
            wrong(json!(["10.0.0.1/8", "11.0.0.0/8"])),
            [
                "spec.cidrs[0]: Invalid value: \"10.0.0.1/8\": must not have bits set beyond the prefix length".to_owned(),
                format!("spec.cidrs: Invalid value: [\"10.0.0.1/8\",\"11.0.0.0/8\"]: {one_family}"),
            ]
        );
    }
}
