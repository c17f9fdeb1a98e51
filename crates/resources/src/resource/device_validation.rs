//! The devices of a ResourceSlice: their attributes and capacities, taints, shared counters and nodes.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::validation::formats::mismatch;
use serde_json::{Map, Value};

use super::limits::{has_too_many, set};
use super::request_policy::request_policy;
use crate::core::volume::drivers::driver_form;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::node_selector;

/// Maximum number of attributes and capacities of a device together.
const PROPERTIES_MAX: usize = 32;
/// Maximum number of values of a device's attributes, items of lists included.
const VALUES_MAX: usize = 48;
const VALUE_BYTES_MAX: usize = 64;
const ID_BYTES_MAX: usize = 32;
/// Maximum length of the name of an attribute or capacity as errors show it: a domain, a slash and an identifier.
const SHOWN_BYTES_MAX: usize = 63 + 1 + ID_BYTES_MAX;
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

/// Checks a device, which tells its nodes if and only if the slice says so. Taints that the old device of this name has
/// as well are not looked at. Follows `validateDevice`.
pub(super) fn device(
    device: &Field<'_, '_>,
    old: Option<&Field<'_, '_>>,
    tells_nodes: bool,
    errors: &mut Errors,
) {
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
        self::attribute(&attribute.called(&shortened(name)), errors);
    }
    let is_shared = device.at("allowMultipleAllocations").is_true();
    let capacities = device.at("capacity");
    for (name, capacity) in device.members("capacity") {
        qualified_name(&capacities, name, errors);
        let name = shortened(name);
        let capacity = capacity.called(&name);
        if is_shared {
            request_policy(&capacity, errors);
        } else {
            let why = "allowMultipleAllocations must be true";
            capacity.at("requestPolicy").must_be_unset(why, errors);
        }
    }
    let taints = device.at("taints");
    let stay = old.is_some_and(|old| old.at("taints").value() == taints.value());
    if !stay && !has_too_many(&taints, TAINTS_MAX, errors) {
        for taint in taints.items("") {
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
    mappings(device, errors);
}

/// Returns a name as errors show it, with dots in the middle of a long one. Follows `truncateIfTooLong`.
fn shortened(name: &str) -> String {
    const DOTS: &str = "...";
    if name.len() <= SHOWN_BYTES_MAX {
        return name.to_owned();
    }
    let kept = SHOWN_BYTES_MAX - DOTS.len();
    let begin = name.floor_char_boundary(kept.div_ceil(2));
    let end = name.ceil_char_boundary(name.len() - kept / 2);
    format!("{}{DOTS}{}", &name[..begin], &name[end..])
}

/// Checks by which of a node's resources a device counts. The feature is off, so that only older objects have such.
/// Follows `validateNodeAllocatableResourceMappings`.
fn mappings(device: &Field<'_, '_>, errors: &mut Errors) {
    for (name, mapping) in device.members("nodeAllocatableResourceMappings") {
        if name.contains('/') && !name.contains("kubernetes.io/") {
            let why = "must be a node allocatable resource name";
            errors.push(mapping.invalid_value(name, why));
        }
        let [times, key] = ["allocationMultiplier", "capacityKey"].map(|it| mapping.at(it));
        if !times.is_set() && !key.is_set() {
            let why = "at least one of allocationMultiplier or capacityKey must be set";
            errors.push(mapping.invalid_value("", why));
        }
        if times.quantity().is_some_and(|it| !it.is_positive()) {
            errors.push(times.invalid_value(times.canonical_quantity(), "must be positive"));
        }
        if key.is_set() && key.is_empty() {
            errors.push(key.invalid("capacityKey must not be an empty string"));
        } else if key.is_set() && device.value()["capacity"].get(key.text()).is_none() {
            errors.push(key.not_found());
        }
    }
}

/// Returns true if a device has an attribute that is a list.
pub(super) fn has_lists(device: &Field<'_, '_>) -> bool {
    let mut attributes = device.members("attributes");
    attributes.any(|(_, it)| LISTS.iter().any(|list| it.at(list).is_set()))
}

/// Returns the number of values of an attribute, which is one unless it has lists. Follows `numEntriesDeviceAttribute`.
fn values(attribute: &Field<'_, '_>) -> usize {
    let items: usize = LISTS.iter().map(|it| attribute.at(it).len()).sum();
    items.max(1)
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
    if !is_semantic_version(at.text()) {
        errors.push(at.invalid("must be a string compatible with semver.org spec 2.0.0"));
    }
    if at.text().len() > VALUE_BYTES_MAX {
        errors.push(at.too_long(VALUE_BYTES_MAX));
    }
}

/// Returns true for a version as semver.org has it, of whatever size its numbers are.
fn is_semantic_version(text: &str) -> bool {
    let is_number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
        digits && (part == "0" || !part.starts_with('0'))
    };
    let is_word = |part: &str| {
        let allowed = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
        !part.is_empty() && part.bytes().all(allowed)
    };
    let is_release = |part: &str| {
        let all_digits = part.bytes().all(|it| it.is_ascii_digit());
        is_word(part) && (!all_digits || is_number(part))
    };
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(it, build)| (it, Some(build)));
    let (core, release) = text
        .split_once('-')
        .map_or((text, None), |(it, rest)| (it, Some(rest)));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && release.is_none_or(|it| it.split('.').all(is_release))
        && build.is_none_or(|it| it.split('.').all(is_word))
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
        device(&Field::root(&all), None, tells_nodes, &mut errors);
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
    fn versions_are_those_of_semver() {
        for right in [
            "0.0.0",
            "1.2.3-a.0.b-1+001.-",
            "99999999999999999999.0.0",
            "1.0.0-0a",
            "1.0.0+a-b",
        ] {
            assert!(is_semantic_version(right), "{right}");
        }
        for wrong in [
            "",
            "1.2",
            "01.2.3",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3+",
            "1.2.3-a..b",
            "v1.2.3",
            "1.2.3+a+b",
        ] {
            assert!(!is_semantic_version(wrong), "{wrong}");
        }
    }

    #[test]
    fn attributes_count_by_their_values() {
        let count = |attribute: Value| values(&Field::root(&attribute));
        assert_eq!(count(json!({})), 1);
        assert_eq!(count(json!({"int": 1, "string": ""})), 1);
        assert_eq!(count(json!({"int": 1, "ints": [1, 2], "bools": [true]})), 3);
    }

    #[test]
    fn long_names_are_shown_in_part() {
        let long = format!("{}/{}", "d".repeat(63), "é".repeat(50));
        let shown = shortened(&long);
        assert!(
            shown.len() <= SHOWN_BYTES_MAX && shown.starts_with("ddd"),
            "{shown}"
        );
        assert_eq!(shortened("short"), "short");
        let errors = wrong(json!({"attributes": {long: {}}}), false);
        assert!(
            errors[2].starts_with(&format!("attributes[{shown}]: ")),
            "{errors:?}"
        );
    }

    #[test]
    fn taints_that_stay_are_not_looked_at() {
        let tainted =
            |effect: &str| json!({"name": "d", "taints": [{"key": "k", "effect": effect}]});
        let (old, new) = (tainted("x"), tainted("y"));
        for (now, count) in [(&old, 0), (&new, 1)] {
            let mut errors = Errors::new();
            device(
                &Field::root(now),
                Some(&Field::root(&old)),
                false,
                &mut errors,
            );
            assert_eq!(errors.len(), count);
        }
    }

    #[test]
    fn resources_of_nodes_go_with_capacities() {
        let with = |mapping: Value| json!({"capacity": {"m": {"value": "1"}}, "nodeAllocatableResourceMappings": {"cpu": mapping}});
        let at = "nodeAllocatableResourceMappings[cpu]";
        assert_eq!(
            wrong(
                with(json!({"capacityKey": "m", "allocationMultiplier": "2"})),
                false
            ),
            [""; 0]
        );
        for (mapping, why) in [
            (
                json!({}),
                format!(
                    "{at}: Invalid value: \"\": at least one of allocationMultiplier or capacityKey must be set"
                ),
            ),
            (
                json!({"allocationMultiplier": "-1"}),
                format!("{at}.allocationMultiplier: Invalid value: \"-1\": must be positive"),
            ),
            (
                json!({"capacityKey": "x"}),
                format!("{at}.capacityKey: Not found: \"x\""),
            ),
        ] {
            assert_eq!(wrong(with(mapping), false), [why]);
        }
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
