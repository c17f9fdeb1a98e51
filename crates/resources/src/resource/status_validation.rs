//! The status of a ResourceClaim: an allocation stays until it is removed as a whole, and only allocated devices have a
//! status.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::go_text::{self, quoted};
use ringwatch_apimachinery::path::{get, list};
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::Value;

use super::claim_validation::{named_request, named_requests, request_names};
use super::class_validation::{configuration, opaque_object};
use super::device_validation::binding_conditions;
use super::limits::{has_too_many, set};
use super::slice_validation::pool_name;
use crate::core::volume::drivers::driver_name;
use crate::validation::conditions::conditions;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::node_selector;
use crate::validation::values::network;

const IMMUTABLE: &str = "field is immutable";
const RESERVED: &str = "status.reservedFor";
const RESERVED_MAX: usize = 256;
/// Maximum number of conditions of an allocated device.
const CONDITIONS_MAX: usize = 8;
const RESULTS_MAX: usize = 32;
const UUID_BYTES: usize = 36;
/// Maximum number of configurations, of the class and of the claim.
const CONFIGS_MAX: usize = 64;

/// Checks a change of the status of a ResourceClaim: an allocation is only removed as a whole, and only allocated
/// claims are reserved. Follows `ValidateResourceClaimStatusUpdate`.
pub(super) fn status(claim: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let root = Field::root(claim);
    let reserved = root.at(RESERVED);
    set(
        &reserved,
        RESERVED_MAX,
        "uid",
        &mut errors,
        |user, errors| {
            for member in ["resource", "name", "uid"] {
                user.at(member).must_be_set(errors);
            }
        },
    );
    let allocation = root.at("status.allocation");
    allocated_devices(&root, &mut errors);
    if !reserved.is_empty() && !allocation.is_set() {
        let why = "may not be specified when `allocated` is not set";
        errors.push(reserved.forbidden(why));
    } else if get(claim, "metadata.deletionTimestamp").is_some() {
        let before: HashSet<&Value> = list(old, RESERVED).iter().collect();
        if list(claim, RESERVED)
            .iter()
            .any(|user| !before.contains(user))
        {
            let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(reserved.forbidden(why));
        }
    }
    if allocation.is_set() {
        match get(old, "status.allocation").filter(|it| !it.is_null()) {
            Some(before) if allocation.value() != before => {
                errors.push(allocation.invalid(IMMUTABLE));
            }
            Some(_) => {}
            None => {
                let names = request_names(&root.at("spec.devices"));
                self::allocation(&allocation, &names, &mut errors);
            }
        }
    }
    errors
}

/// Checks a new allocation: each device is for a request of the claim. Follows `validateAllocationResult`.
fn allocation(at: &Field<'_, '_>, names: &HashSet<String>, errors: &mut Errors) {
    let results = at.at("devices.results");
    if !has_too_many(&results, RESULTS_MAX, errors) {
        for result in results.items("") {
            named_request(&result.at("request"), names, errors);
            driver_name(&result.at("driver"), errors);
            pool_name(&result.at("pool"), errors);
            result.at("device").must_conform(formats::dns_label, errors);
            binding_conditions(&result, errors);
            share_id(&result, errors);
        }
    }
    let configs = at.at("devices.config");
    if !has_too_many(&configs, CONFIGS_MAX, errors) {
        for config in configs.items("") {
            let sources = &["FromClaim", "FromClass"];
            config.at("source").must_be_one_of(sources, errors);
            named_requests(&config, names, errors);
            configuration(&config, errors);
        }
    }
    let selector = at.at("nodeSelector");
    if selector.is_set() {
        node_selector(&selector, errors);
    }
}

/// Checks the identity of a share of a device, a UUID in small letters. Follows `validateUID`.
fn share_id(of: &Field<'_, '_>, errors: &mut Errors) {
    let id = of.at("shareID");
    let text = id.text();
    if !id.is_set() {
        return;
    }
    if let Some(why) = uuid_error(text) {
        errors.push(id.invalid(format!("error validating uid: {why}")));
    } else if text.len() != UUID_BYTES || text != text.to_lowercase() {
        let why = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
        errors.push(id.invalid(why));
    }
}

/// Returns the reason why a text is no UUID in any of its forms, in the words of Go's library.
fn uuid_error(text: &str) -> Option<String> {
    const PREFIX: &str = "urn:uuid:";
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    const WRONG: &str = "invalid UUID format";
    let bytes = text.as_bytes();
    let bytes = match bytes.len() {
        UUID_BYTES => bytes,
        45 => {
            let (prefix, rest) = bytes.split_at(PREFIX.len());
            if !prefix.eq_ignore_ascii_case(PREFIX.as_bytes()) {
                let prefix = String::from_utf8_lossy(prefix);
                return Some(format!("invalid urn prefix: {}", quoted(&prefix)));
            }
            rest
        }
        38 => {
            let inside = bytes
                .strip_prefix(b"{")
                .and_then(|it| it.strip_suffix(b"}"));
            let Some(inside) = inside else {
                return Some("invalid bracketed UUID format".to_owned());
            };
            inside
        }
        32 => {
            let right = bytes.iter().all(u8::is_ascii_hexdigit);
            return (!right).then(|| WRONG.to_owned());
        }
        other => return Some(format!("invalid UUID length: {other}")),
    };
    let fits = |(at, byte): (usize, &u8)| match HYPHENS.contains(&at) {
        true => *byte == b'-',
        false => byte.is_ascii_hexdigit(),
    };
    let right = bytes.iter().enumerate().all(fits);
    (!right).then(|| WRONG.to_owned())
}

/// Checks the statuses of devices: each is of a device that the claim has got, and no two are of one. Follows
/// `validateDeviceStatus`.
fn allocated_devices(claim: &Field<'_, '_>, errors: &mut Errors) {
    let given = claim.items("status.allocation.devices.results");
    let given: HashSet<_> = given.map(|it| device_id(&it)).collect();
    for device in claim.items("status.devices") {
        driver_name(&device.at("driver"), errors);
        pool_name(&device.at("pool"), errors);
        device.at("device").must_conform(formats::dns_label, errors);
        share_id(&device, errors);
        if !given.contains(&device_id(&device)) {
            let shown = shown_id(&device);
            let detail = format!("{shown}: must be an allocated device in the claim");
            errors.push(FieldError::new(
                FieldErrorKind::Invalid,
                device.field(),
                detail,
            ));
        }
        let list = device.at("conditions");
        has_too_many(&list, CONDITIONS_MAX, errors);
        conditions(&list, errors);
        let data = device.at("data");
        if data.is_set() {
            opaque_object(&data, errors);
        }
        network_data(&device.at("networkData"), errors);
    }
    let mut seen = HashSet::new();
    for device in claim.items("status.devices") {
        if !seen.insert(device_id(&device)) {
            let kind = FieldErrorKind::Duplicate;
            errors.push(FieldError::new(kind, device.field(), shown_id(&device)));
        }
    }
}

/// Returns what tells a device from the others as Go writes it, which errors show.
fn shown_id(device: &Field<'_, '_>) -> String {
    let [driver, pool, name, share] = device_id(device).map(|it| go_text::json(&it.into()));
    format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{name},\"ShareID\":{share}}}")
}

/// Checks the interface of a device that is one of a network. Follows `validateNetworkDeviceData`.
fn network_data(at: &Field<'_, '_>, errors: &mut Errors) {
    const NAME_BYTES_MAX: usize = 256;
    const HARDWARE_ADDRESS_BYTES_MAX: usize = 128;
    const ADDRESSES_MAX: usize = 16;
    for (member, most) in [
        ("interfaceName", NAME_BYTES_MAX),
        ("hardwareAddress", HARDWARE_ADDRESS_BYTES_MAX),
    ] {
        let text = at.at(member);
        if text.text().len() > most {
            errors.push(text.too_long(most));
        }
    }
    set(
        &at.at("ips"),
        ADDRESSES_MAX,
        "",
        errors,
        |address, errors| {
            address.must_conform(interface_address, errors);
        },
    );
}

/// Returns the errors in an address with the length of its network's prefix. Follows `IsValidInterfaceAddress` in
/// apimachinery's pkg/util/validation.
fn interface_address(text: &str) -> Vec<String> {
    /// The number of bits by which an address of IPv4 is longer when it is written as one of IPv6.
    const MAPPED_BITS: u8 = 96;
    let Some((address, bits)) = network(text) else {
        return vec![
            "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".into(),
        ];
    };
    let shortest = address.to_canonical();
    let bits = if shortest == address {
        bits
    } else {
        bits.saturating_sub(MAPPED_BITS)
    };
    let canonical = format!("{shortest}/{bits}");
    if text == canonical {
        return Vec::new();
    }
    vec![format!("must be in canonical form ({canonical:?})")]
}

/// Returns what tells an allocated device from the others.
pub(super) fn device_id<'v>(device: &Field<'v, '_>) -> [&'v str; 4] {
    ["driver", "pool", "device", "shareID"].map(|member| device.at(member).text())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    #[test]
    fn a_device_has_a_status_if_it_is_allocated() {
        let of = |device: &str| json!({"driver": "d", "pool": "p", "device": device});
        let claim = |devices: Value| {
            json!({"status": {"devices": devices,
                "allocation": {"devices": {"results": [of("a"), of("b")]}}}})
        };
        let old = claim(json!([]));
        let wrong = |devices: Value| messages(&status(&claim(devices), &old));
        assert_eq!(wrong(json!([of("a"), of("b")])), [""; 0]);
        assert_eq!(
            wrong(json!([of("c")])),
            [
                "status.devices[0]: Invalid value: {\"Driver\":\"d\",\"Pool\":\"p\",\"Device\":\"c\",\"ShareID\":\"\"}: must be an allocated device in the claim"
            ]
        );
        assert_eq!(
            wrong(json!([of("a"), of("a")])),
            [
                "status.devices[1]: Duplicate value: {\"Driver\":\"d\",\"Pool\":\"p\",\"Device\":\"a\",\"ShareID\":\"\"}"
            ]
        );
        let mut long = of("a");
        long["data"] = json!({"d": "x".repeat(10 * 1024)});
        assert_eq!(
            wrong(json!([long])),
            ["status.devices[0].data: Too long: may not be more than 10240 bytes"]
        );
    }

    #[test]
    fn what_is_wrong_with_a_uuid_is_told() {
        let hyphens = "01234567-89ab-cdef-0123-456789abcdef";
        for right in [
            hyphens.to_owned(),
            format!("{{{hyphens}}}"),
            format!("URN:UUID:{hyphens}"),
            hyphens.replace('-', ""),
        ] {
            assert_eq!(uuid_error(&right), None, "{right}");
        }
        for (wrong, why) in [
            ("x".to_owned(), "invalid UUID length: 1"),
            (hyphens.replace("89ab", "89ag"), "invalid UUID format"),
            (hyphens.replace('-', "0"), "invalid UUID format"),
            (format!("({hyphens})"), "invalid bracketed UUID format"),
            (
                format!("urn;uuid:{hyphens}"),
                "invalid urn prefix: \"urn;uuid:\"",
            ),
            ("g".repeat(32), "invalid UUID format"),
        ] {
            assert_eq!(uuid_error(&wrong).as_deref(), Some(why), "{wrong}");
        }
    }

    #[test]
    fn users_are_told_apart_after_all_else() {
        let user = json!({"resource": "pods", "uid": "u"});
        let claim = json!({"status": {"allocation": {}, "reservedFor": [user, user]}});
        assert_eq!(
            messages(&status(&claim, &claim)),
            [
                "status.reservedFor[0].name: Required value",
                "status.reservedFor[1].name: Required value",
                "status.reservedFor[1]: Duplicate value: \"u\"",
            ]
        );
    }

    #[test]
    fn interfaces_have_addresses_with_prefixes() {
        let not_one = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        for (text, why) in [
            ("10.9.8.7/24", ""),
            ("2001:db8::1/64", ""),
            ("10.9.8.7", not_one),
            ("10.9.8.7/33", not_one),
            (
                "010.9.8.7/24",
                "must be in canonical form (\"10.9.8.7/24\")",
            ),
            (
                "::ffff:192.168.0.1/120",
                "must be in canonical form (\"192.168.0.1/24\")",
            ),
        ] {
            assert_eq!(interface_address(text).concat(), why, "{text}");
        }
        let data = json!({"interfaceName": "x".repeat(257), "ips": ["10.0.0.1/8", "10.0.0.1/8"]});
        let mut errors = Errors::new();
        network_data(&Field::root(&data), &mut errors);
        assert_eq!(
            messages(&errors),
            [
                "interfaceName: Too long: may not be more than 256 bytes",
                "ips[1]: Duplicate value: \"10.0.0.1/8\""
            ]
        );
    }

    #[test]
    fn an_allocation_is_for_requests() {
        let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "a"});
        let with = |member: &str, value: Value| {
            let mut other = result.clone();
            other[member] = value;
            json!({"devices": {"results": [other]}})
        };
        let claim = |allocation: Value| json!({"spec": {"devices": {"requests": [{"name": "r"}]}}, "status": {"allocation": allocation}});
        let wrong = |allocation: Value| messages(&status(&claim(allocation), &json!({})));
        assert_eq!(
            wrong(with(
                "shareID",
                json!("01234567-89ab-cdef-0123-456789abcdef")
            )),
            [""; 0]
        );
        let at = "status.allocation.devices";
        for (allocation, why) in [
            (
                with("request", json!("s")),
                format!(
                    "{at}.results[0].request: Invalid value: \"s\": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
                ),
            ),
            (
                with("driver", json!("")),
                format!("{at}.results[0].driver: Required value"),
            ),
            (
                with("shareID", json!("x")),
                format!(
                    "{at}.results[0].shareID: Invalid value: \"x\": error validating uid: invalid UUID length: 1"
                ),
            ),
            (
                json!({"devices": {"config": [{"source": "x", "opaque": {"driver": "d", "parameters": {}}}]}}),
                format!(
                    "{at}.config[0].source: Unsupported value: \"x\": supported values: \"FromClaim\", \"FromClass\""
                ),
            ),
        ] {
            assert_eq!(wrong(allocation), [why]);
        }
        let (old, new) = (
            claim(with("device", json!("a"))),
            claim(with("device", json!("b"))),
        );
        assert_eq!(status(&old, &old), []);
        assert_eq!(status(&new, &old).len(), 1);
    }
}
