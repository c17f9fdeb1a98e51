//! The devices of a ResourceSlice: their attributes and capacities, taints, shared counters and nodes.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::validation::formats::mismatch;
use serde_json::{Map, Value};

use super::limits::{has_too_many, set};
use crate::core::volume::drivers::driver_form;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::node_selector;

/// Maximum number of attributes and capacities of a device together.
const PROPERTIES_MAX: usize = 32;
/// Maximum number of values of a device's attributes, items of lists included.
const VALUES_MAX: usize = 48;
const VALUE_BYTES_MAX: usize = 64;
const ID_BYTES_MAX: usize = 32;
const TAINTS_MAX: usize = 16;
/// Maximum number of counter sets from which a device takes.
const SETS_MAX: usize = 2;
const COUNTERS_MAX: usize = 32;
const BINDING_CONDITIONS_MAX: usize = 4;
/// The members in which an attribute has its value, and those of lists.
const SCALARS: [&str; 4] = ["bool", "int", "string", "version"];
const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];
/// The effects of taints of devices.
pub(super) const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];
const OWN_NODES: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// Checks a device, which tells its nodes if and only if the slice says so. Follows `validateDevice`.
pub(super) fn device(device: &Field<'_, '_>, tells_nodes: bool, errors: &mut Errors) {
    device.at("name").must_conform(formats::dns_label, errors);
    let count = |member: &str| device.members(member).count();
    let properties = count("attributes") + count("capacity");
    let values: usize = device
        .members("attributes")
        .map(|(_, it)| values(&it))
        .sum();
    for (found, most, of) in [
        (properties, PROPERTIES_MAX, "attributes and capacities"),
        (values, VALUES_MAX, "attribute values"),
    ] {
        if found > most {
            let why = format!("the total number of {of} must not exceed {most}");
            errors.push(device.invalid_value(found, why));
        }
    }
    let attributes = device.at("attributes");
    for (name, attribute) in device.members("attributes") {
        qualified_name(&attributes, name, errors);
        self::attribute(&attribute, errors);
    }
    let is_shared = device.at("allowMultipleAllocations").is_true();
    let capacities = device.at("capacity");
    for (name, capacity) in device.members("capacity") {
        qualified_name(&capacities, name, errors);
        if !is_shared {
            let why = "allowMultipleAllocations must be true";
            capacity.at("requestPolicy").must_be_unset(why, errors);
        }
    }
    if !has_too_many(&device.at("taints"), TAINTS_MAX, errors) {
        for taint in device.items("taints") {
            self::taint(&taint, errors);
        }
    }
    let taken = device.at("consumesCounters");
    set(&taken, SETS_MAX, "counterSet", errors, |from, errors| {
        from.at("counterSet")
            .must_be_set_and_conform(formats::dns_label, errors);
        counters(&from.at("counters"), COUNTERS_MAX, errors);
    });
    nodes(device, tells_nodes, errors);
    binding_conditions(device, errors);
}

/// Returns true if a device has an attribute that is a list.
pub(super) fn has_lists(device: &Field<'_, '_>) -> bool {
    let mut attributes = device.members("attributes");
    attributes.any(|(_, it)| LISTS.iter().any(|list| it.at(list).is_set()))
}

fn values(attribute: &Field<'_, '_>) -> usize {
    let scalars = SCALARS
        .iter()
        .filter(|it| attribute.at(it).is_set())
        .count();
    let items: usize = LISTS.iter().map(|it| attribute.at(it).len()).sum();
    scalars + items
}

/// Checks the value of an attribute, of which there is one. Follows `validateDeviceAttribute`.
fn attribute(at: &Field<'_, '_>, errors: &mut Errors) {
    let text = at.at("string");
    if text.text().len() > VALUE_BYTES_MAX {
        errors.push(text.too_long(VALUE_BYTES_MAX));
    }
    if at.at("version").is_set() {
        version(&at.at("version"), errors);
    }
    for list in LISTS.map(|it| at.at(it)) {
        if list.is_set() && list.is_empty() {
            errors.push(list.invalid("must not be empty if specified"));
        }
    }
    for text in at.items("strings") {
        if text.text().len() > VALUE_BYTES_MAX {
            errors.push(text.too_long(VALUE_BYTES_MAX));
        }
    }
    for it in at.items("versions") {
        version(&it, errors);
    }
    let set = SCALARS.iter().chain(&LISTS).filter(|it| at.at(it).is_set());
    match set.count() {
        1 => {}
        0 => errors.push(at.invalid_value("", "exactly one value must be specified")),
        _ => errors.push(at.invalid("exactly one value must be specified")),
    }
}

fn version(at: &Field<'_, '_>, errors: &mut Errors) {
    if semver::Version::parse(at.text()).is_err() {
        errors.push(at.invalid("must be a string compatible with semver.org spec 2.0.0"));
    }
    if at.text().len() > VALUE_BYTES_MAX {
        errors.push(at.too_long(VALUE_BYTES_MAX));
    }
}

/// Checks the name of an attribute or capacity, which may begin with a domain and a slash. Errors are about the map.
/// Follows `validateQualifiedName`.
pub(super) fn qualified_name(map: &Field<'_, '_>, name: &str, errors: &mut Errors) {
    let identifier = match name.split('/').collect::<Vec<_>>()[..] {
        [identifier] => identifier,
        [domain, identifier] => {
            if domain.is_empty() {
                errors.push(map.invalid_value("", "the domain must not be empty"));
            } else {
                driver_form(map, domain, errors);
            }
            if identifier.is_empty() {
                errors.push(map.invalid_value("", "the name must not be empty"));
                return;
            }
            identifier
        }
        _ => return,
    };
    if identifier.len() > ID_BYTES_MAX {
        errors.push(map.too_long(ID_BYTES_MAX));
    }
    let begins = identifier.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !begins || !identifier.bytes().all(word) {
        let why = mismatch(
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
            "[A-Za-z_][A-Za-z0-9_]*",
            &["my_name", "MY_NAME", "MyName"],
        );
        errors.push(map.invalid_value(identifier, why));
    }
}

/// Follows `validateDeviceTaint`.
fn taint(taint: &Field<'_, '_>, errors: &mut Errors) {
    taint.at("key").must_conform(formats::label_key, errors);
    taint.at("value").may_conform(formats::label_value, errors);
    taint.at("effect").must_be_one_of(EFFECTS, errors);
}

/// Checks the names of counters. Follows `validateCounterSet` and `validateDeviceCounterConsumption`.
pub(super) fn counters(map: &Field<'_, '_>, most: usize, errors: &mut Errors) {
    if map.is_empty() {
        errors.push(map.required(""));
    } else if !has_too_many(map, most, errors) {
        let names = map.value().as_object().into_iter().flat_map(Map::keys);
        for name in names {
            let wrong = formats::dns_label(name).into_iter();
            errors.extend(wrong.map(|why| map.invalid_value(name.as_str(), why)));
        }
    }
}

fn nodes(device: &Field<'_, '_>, tells: bool, errors: &mut Errors) {
    let [name, selector, all] = ["nodeName", "nodeSelector", "allNodes"].map(|it| device.at(it));
    if !tells {
        if name.is_set() || selector.is_set() || all.is_set() {
            let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.push(device.invalid_value(Value::Null, why));
        }
        return;
    }
    let mut ways = Vec::new();
    if name.is_set() {
        if name.is_empty() {
            errors.push(name.invalid("must not be empty"));
        } else {
            ways.push("`nodeName`");
            name.must_conform(formats::dns_subdomain, errors);
        }
    }
    if selector.is_set() {
        ways.push("`nodeSelector`");
        node_selector(&selector, errors);
    }
    if all.is_true() {
        ways.push("`allNodes`");
    } else if all.is_set() {
        errors.push(all.invalid("must be either unset or set to true"));
    }
    match ways.len() {
        0 => errors.push(device.required(OWN_NODES)),
        1 => {}
        _ => errors.push(device.invalid_value(format!("{{{}}}", ways.join(", ")), OWN_NODES)),
    }
}

/// Checks the conditions that end a binding, well or not: there are both or none, and none is in both lists. Follows
/// `validateDeviceBindingParameters`.
pub(super) fn binding_conditions(device: &Field<'_, '_>, errors: &mut Errors) {
    let lists = ["bindingConditions", "bindingFailureConditions"].map(|it| device.at(it));
    for list in &lists {
        if !has_too_many(list, BINDING_CONDITIONS_MAX, errors) {
            for condition in list.items("") {
                condition.must_conform(formats::label_key, errors);
            }
        }
    }
    let [well, badly] = &lists;
    let good: BTreeSet<&str> = well.items("").map(|it| it.text()).collect();
    for list in &lists {
        let mut seen = BTreeSet::new();
        for condition in list.items("") {
            if !seen.insert(condition.text()) {
                errors.push(condition.duplicate_of(condition.text()));
            }
            if list.field() == badly.field() && good.contains(condition.text()) {
                let why = "bindingFailureConditions must not overlap with bindingConditions";
                errors.push(condition.invalid(why));
            }
        }
    }
    for (missing, other, why) in [
        (
            well,
            badly,
            "bindingConditions are required to use bindingFailureConditions",
        ),
        (
            badly,
            well,
            "bindingFailureConditions are required to use bindingConditions",
        ),
    ] {
        if missing.is_empty() && !other.is_empty() {
            errors.push(missing.invalid_value(missing.value().clone(), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::messages;

    fn wrong(of: Value, tells_nodes: bool) -> Vec<String> {
        let mut all = of;
        all["name"] = json!("d");
        let mut errors = Errors::new();
        device(&Field::root(&all), tells_nodes, &mut errors);
        messages(&errors)
    }

    #[test]
    fn devices_that_are_wrong() {
        for good in [
            json!({}),
            json!({"attributes": {"a": {"int": 1}, "d.example.com/b": {"strings": ["x"]}, "v": {"version": "1.2.3"}},
                "capacity": {"memory": {"value": "1Gi"}}, "taints": [{"key": "k", "effect": "NoExecute"}],
                "consumesCounters": [{"counterSet": "c", "counters": {"a": {"value": "1"}}}],
                "bindingConditions": ["a"], "bindingFailureConditions": ["b"]}),
        ] {
            assert_eq!(wrong(good, false), [""; 0]);
        }
        for (bad, why) in [
            (
                json!({"attributes": {"a": {}}}),
                "attributes[a]: Invalid value: \"\": exactly one value must be specified",
            ),
            (
                json!({"attributes": {"a": {"version": "1.2"}}}),
                "attributes[a].version: Invalid value: \"1.2\": must be a string compatible with semver.org spec 2.0.0",
            ),
            (
                json!({"attributes": {"a": {"string": "x".repeat(65)}}}),
                "attributes[a].string: Too long: may not be more than 64 bytes",
            ),
            (
                json!({"attributes": {"a-b": {"int": 1}}}),
                "attributes: Invalid value: \"a-b\": a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')",
            ),
            (
                json!({"capacity": {"/m": {"value": "1"}}}),
                "capacity: Invalid value: \"\": the domain must not be empty",
            ),
            (
                json!({"capacity": {"m": {"value": "1", "requestPolicy": {}}}}),
                "capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true",
            ),
            (
                json!({"taints": [{"key": "k", "effect": "x"}]}),
                "taints[0].effect: Unsupported value: \"x\": supported values: \"NoExecute\", \"NoSchedule\", \"None\"",
            ),
            (
                json!({"consumesCounters": [{"counterSet": "c"}]}),
                "consumesCounters[0].counters: Required value",
            ),
            (
                json!({"bindingConditions": ["a"], "bindingFailureConditions": ["a"]}),
                "bindingFailureConditions[0]: Invalid value: \"a\": bindingFailureConditions must not overlap with bindingConditions",
            ),
        ] {
            assert_eq!(wrong(bad, false), [why]);
        }
        let attributes: Map<String, Value> = (0..=PROPERTIES_MAX)
            .map(|n| (format!("a{n}"), json!({"int": n})))
            .collect();
        assert_eq!(
            wrong(json!({ "attributes": attributes }), false),
            [
                ": Invalid value: 33: the total number of attributes and capacities must not exceed 32"
            ]
        );
    }

    #[test]
    fn a_device_tells_its_nodes_where_the_slice_does_not() {
        assert_eq!(wrong(json!({"nodeName": "n"}), true), [""; 0]);
        assert_eq!(wrong(json!({"nodeName": "n"}), false).len(), 1);
        assert_eq!(wrong(json!({}), true).len(), 1);
        assert_eq!(
            wrong(json!({"nodeName": "n", "allNodes": true}), true).len(),
            1
        );
        assert_eq!(wrong(json!({"allNodes": false}), true).len(), 2);
    }
}
