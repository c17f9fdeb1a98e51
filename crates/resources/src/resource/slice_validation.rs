//! ResourceSlices: which nodes can use the devices, and how many there are. Node, driver and pool name are immutable:
//! nodes may write only their own slices, so none makes its slice another's.
//!
//! Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.36.

use std::collections::HashMap;

use ringwatch_apimachinery::validation::formats;
use serde_json::Value;

use super::device_validation::{self, has_lists};
use super::limits::set;
use crate::core::volume::drivers::driver_name;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::node_selector;

const DEVICES_MAX: usize = 128;
/// Maximum number of devices if one of them has taints, counters or attributes that are lists.
const COSTLY_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const COUNTERS_MAX: usize = 32;
const POOL_NAME_BYTES_MAX: usize = 253;
const ONE_SELECTION: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

/// Checks a new ResourceSlice. Follows `ValidateResourceSlice`.
pub(crate) fn slice(slice: &Field<'_, '_>, errors: &mut Errors) {
    spec(slice, None, errors);
}

/// Checks an update of a ResourceSlice: node, driver and pool name are immutable. Follows
/// `ValidateResourceSliceUpdate`.
pub(crate) fn changed_slice(slice: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    spec(slice, Some(old), errors);
}

/// Follows `validateResourceSliceSpec`.
fn spec(slice: &Field<'_, '_>, old: Option<&Field<'_, '_>>, errors: &mut Errors) {
    let spec = slice.at("spec");
    driver_name(&spec.at("driver"), errors);
    pool(&spec.at("pool"), errors);
    if let Some(old) = old {
        for field in ["spec.pool.name", "spec.driver"] {
            slice.at(field).must_stay_text(&old.at(field), errors);
        }
        slice
            .at("spec.nodeName")
            .must_stay(&old.at("spec.nodeName"), errors);
    }
    nodes(&spec, errors);
    let (devices, counters) = (spec.at("devices"), spec.at("sharedCounters"));
    if devices.is_set() && counters.is_set() {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(spec.invalid_value("", why));
    }
    let is_costly = |it: Field<'_, '_>| {
        !it.at("taints").is_empty() || !it.at("consumesCounters").is_empty() || has_lists(&it)
    };
    let most = if spec.items("devices").any(is_costly) {
        COSTLY_DEVICES_MAX
    } else {
        DEVICES_MAX
    };
    let by_device = spec.at("perDeviceNodeSelection").is_true();
    let mut before = HashMap::new();
    for device in old.into_iter().flat_map(|old| old.items("spec.devices")) {
        before.entry(device.at("name").text()).or_insert(device);
    }
    set(&devices, most, "name", errors, |device, errors| {
        let old = before.get(device.at("name").text());
        device_validation::device(device, old, by_device, errors);
    });
    set(
        &counters,
        COUNTER_SETS_MAX,
        "name",
        errors,
        |set, errors| {
            set.at("name")
                .must_be_set_and_conform(formats::dns_label, errors);
            device_validation::counters(&set.at("counters"), COUNTERS_MAX, errors);
        },
    );
}

fn pool(pool: &Field<'_, '_>, errors: &mut Errors) {
    pool_name(&pool.at("name"), errors);
    let count = pool.at("resourceSliceCount");
    let number = count.number().unwrap_or(0);
    if number <= 0 {
        errors.push(count.invalid_value(number, "must be greater than zero"));
    }
    let generation = pool.at("generation");
    if generation.number().is_some_and(|number| number < 0) {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
}

/// Checks the name of a pool of devices, whose parts are separated by slashes. Follows `validatePoolName`.
pub(super) fn pool_name(name: &Field<'_, '_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(name.required(""));
        return;
    }
    if name.text().len() > POOL_NAME_BYTES_MAX {
        errors.push(name.too_long(POOL_NAME_BYTES_MAX));
    }
    for part in name.text().split('/') {
        let wrong = formats::dns_subdomain(part).into_iter();
        errors.extend(wrong.map(|why| name.invalid_value(part, why)));
    }
}

/// Checks that one way is set to tell the nodes that can use the devices.
fn nodes(spec: &Field<'_, '_>, errors: &mut Errors) {
    let mut ways = Vec::new();
    let (name, selector) = (spec.at("nodeName"), spec.at("nodeSelector"));
    if name.is_set() {
        if name.is_empty() {
            errors.push(name.invalid("must be either unset or set to a non-empty string"));
        } else {
            ways.push("`nodeName`");
            name.must_conform(formats::dns_subdomain, errors);
        }
    }
    if selector.is_set() {
        ways.push("`nodeSelector`");
        node_selector(&selector, errors);
        let terms = selector.at("nodeSelectorTerms");
        if terms.len() != 1 {
            let why = "must have exactly one node selector term";
            errors.push(match terms.is_set() {
                true => terms.invalid(why),
                false => terms.invalid_value(Value::Null, why),
            });
        }
    }
    for (member, way) in [
        ("allNodes", "`allNodes`"),
        ("perDeviceNodeSelection", "`perDeviceNodeSelection`"),
    ] {
        let at = spec.at(member);
        if at.is_true() {
            ways.push(way);
        } else if at.is_set() {
            errors.push(at.invalid("must be either unset or set to true"));
        }
    }
    match ways.len() {
        0 => errors.push(spec.required(ONE_SELECTION)),
        1 => {}
        _ => {
            let why = format!("{ONE_SELECTION}, but multiple fields are set");
            errors.push(spec.invalid_value(format!("{{{}}}", ways.join(", ")), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::{found, messages};

    #[test]
    fn slices_that_are_wrong() {
        let good = json!({"spec": {"driver": "d.example.com", "nodeName": "n",
            "pool": {"name": "p/q", "resourceSliceCount": 1, "generation": 0}, "devices": [{"name": "a"}, {"name": "b"}]}});
        assert_eq!(found(slice, &good), []);
        for (at, value, wrong) in [
            ("driver", json!(""), &["spec.driver: Required value"][..]),
            ("pool/name", json!(""), &["spec.pool.name: Required value"]),
            (
                "pool/resourceSliceCount",
                json!(0),
                &["spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero"],
            ),
            (
                "pool/generation",
                json!(-1),
                &["spec.pool.generation: Invalid value: -1: must be greater than or equal to zero"],
            ),
            (
                "nodeName",
                json!(null),
                &[
                    "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
                ],
            ),
            (
                "nodeName",
                json!(""),
                &[
                    "spec.nodeName: Invalid value: \"\": must be either unset or set to a non-empty string",
                    "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
                ],
            ),
            (
                "devices/1/name",
                json!("a"),
                &["spec.devices[1]: Duplicate value: \"a\""],
            ),
        ] {
            let mut object = good.clone();
            let path = format!("/spec/{at}");
            *object.pointer_mut(&path).expect("a field") = value;
            assert_eq!(messages(&found(slice, &object)), wrong, "{object}");
        }
        let mut many = good.clone();
        let devices = (0..=COSTLY_DEVICES_MAX).map(|n| json!({"name": format!("d{n}")}));
        many["spec"]["devices"] = devices.collect();
        assert_eq!(found(slice, &many), []);
        many["spec"]["devices"][3]["taints"] = json!([{"key": "k", "effect": "None"}]);
        let too_many = "spec.devices: Too many: 65: must have at most 64 items";
        assert_eq!(messages(&found(slice, &many)), [too_many]);
        let mut everywhere = good;
        everywhere["spec"]["allNodes"] = json!(true);
        assert_eq!(
            messages(&found(slice, &everywhere)),
            [
                "spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set"
            ]
        );
    }

    #[test]
    fn a_slice_stays_where_it_is() {
        let old = json!({"spec": {"driver": "d", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}}});
        for (path, value, refused) in [
            ("/spec/nodeName", json!("other"), "spec.nodeName"),
            ("/spec/nodeName", json!(null), "spec.nodeName,spec"),
            ("/spec/driver", json!("other"), "spec.driver"),
            ("/spec/pool/name", json!("other"), "spec.pool.name"),
            ("/spec/pool/generation", json!(2), ""),
        ] {
            let mut slice = old.clone();
            *slice.pointer_mut(path).expect("a field") = value;
            let mut errors = Errors::new();
            changed_slice(&Field::root(&slice), &Field::root(&old), &mut errors);
            let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields.join(","), refused, "{path}");
        }
    }

    #[test]
    fn a_selector_of_nodes_has_one_term() {
        let slice_of = |terms: Value| {
            json!({"spec": {"driver": "d", "nodeSelector": terms,
            "pool": {"name": "p", "resourceSliceCount": 1}}})
        };
        for (selector, shown) in [
            (json!({}), "null"),
            (json!({"nodeSelectorTerms": []}), "[]"),
            (
                json!({"nodeSelectorTerms": [{}, {}]}),
                r#"[{"MatchExpressions":null,"MatchFields":null},{"MatchExpressions":null,"MatchFields":null}]"#,
            ),
        ] {
            let mut sent = slice_of(selector);
            sent["apiVersion"] = json!("resource.k8s.io/v1");
            sent["kind"] = json!("ResourceSlice");
            let errors = messages(&found(slice, &sent));
            let last = format!(
                "spec.nodeSelector.nodeSelectorTerms: Invalid value: {shown}: must have exactly one node selector term"
            );
            assert_eq!(errors.last(), Some(&last));
        }
    }
}
