//! ResourceSlices: the devices that a driver offers.

use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::go_text::quoted;
use ringwatch_apimachinery::path::{get_mut, list, set, text};
use ringwatch_registry::RequestContext;
use serde_json::Value;

use crate::strategy::kind_hooks::KindHooks;

/// The members of attributes that hold lists, of which Kubernetes has the feature off.
const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];
/// The member of devices of another feature that is off.
const MAPPINGS: &str = "nodeAllocatableResourceMappings";

/// The behaviour of ResourceSlices: a taint of a device without `timeAdded` gets the time of the write, and fields of
/// features that are off are dropped unless a device has them already.
#[derive(Debug)]
pub(super) struct ResourceSlices;

impl KindHooks for ResourceSlices {
    /// Completes devices, and drops an empty list of devices or counters. Only where both are there it is told that
    /// they are, since one slice has one of both.
    fn default(&self, object: &mut Value) {
        multiply_by_one(object);
        let lists = ["devices", "sharedCounters"].map(|name| &object["spec"][name]);
        if lists.iter().all(|list| list.is_array()) {
            return;
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            let is_empty = |it: &Value| it.as_array().is_some_and(Vec::is_empty);
            spec.retain(|name, it| {
                !(matches!(name.as_str(), "devices" | "sharedCounters") && is_empty(it))
            });
        }
    }

    /// Returns the warning about a driver with capital letters. Follows `WarningsOnCreate` and `WarningsOnUpdate`.
    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let driver = text(object, "spec.driver");
        let warning = || {
            let driver = quoted(driver);
            format!(
                "spec.driver: driver names should be lowercase; {driver} contains uppercase characters"
            )
        };
        let has_capitals = driver != driver.to_lowercase();
        has_capitals.then(warning).into_iter().collect()
    }

    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        date_taints(context, object);
        drop_what_is_off(object, &Value::Null);
    }

    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, old: &Value) {
        date_taints(context, object);
        drop_what_is_off(object, old);
    }
}

/// Follows `dropDisabledDRANodeAllocatableResourcesFields` and `dropDisableDRAListTypeAttributesFields`.
fn drop_what_is_off(slice: &mut Value, old: &Value) {
    let had = list(old, "spec.devices");
    let maps = had
        .iter()
        .any(|it| it[MAPPINGS].as_object().is_some_and(|it| !it.is_empty()));
    let lists = had
        .iter()
        .filter_map(|it| it["attributes"].as_object())
        .flat_map(|it| it.values())
        .any(|it| LISTS.iter().any(|name| !it[name].is_null()));
    let devices = get_mut(slice, "spec.devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten() {
        if !maps && let Some(device) = device.as_object_mut() {
            device.remove(MAPPINGS);
        }
        let attributes = get_mut(device, "attributes").and_then(Value::as_object_mut);
        let attributes = attributes.into_iter().flat_map(|it| it.values_mut());
        for attribute in attributes.filter_map(Value::as_object_mut) {
            if !lists {
                attribute.retain(|name, _| !LISTS.contains(&name.as_str()));
            }
        }
    }
}

/// Sets the multiplier of resources of nodes that have none. Follows `SetDefaults_Device`.
fn multiply_by_one(object: &mut Value) {
    let devices = get_mut(object, "spec.devices").and_then(Value::as_array_mut);
    let maps = devices.into_iter().flatten();
    let maps = maps.filter_map(|device| device.get_mut(MAPPINGS)?.as_object_mut());
    for mapping in maps
        .flat_map(|it| it.values_mut())
        .filter(|it| it.is_object())
    {
        if mapping["allocationMultiplier"].is_null() {
            set(mapping, "allocationMultiplier", "1".into());
        }
    }
}

fn date_taints(context: &RequestContext, object: &mut Value) {
    let now = format_time(context.clock.wall());
    let devices = get_mut(object, "spec.devices").and_then(Value::as_array_mut);
    let taints = devices
        .into_iter()
        .flatten()
        .filter_map(|device| device.get_mut("taints")?.as_array_mut())
        .flatten();
    for taint in taints.filter(|it| it.is_object() && it["timeAdded"].is_null()) {
        set(taint, "timeAdded", now.clone().into());
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_lists_are_told_where_both_are_there() {
        for (spec, kept) in [
            (json!({"devices": []}), json!({})),
            (json!({"sharedCounters": []}), json!({})),
            (
                json!({"sharedCounters": [], "devices": [{"name": "a"}]}),
                json!({"sharedCounters": [], "devices": [{"name": "a"}]}),
            ),
            (
                json!({"sharedCounters": [], "devices": []}),
                json!({"sharedCounters": [], "devices": []}),
            ),
            (
                json!({"devices": [{"name": "a"}]}),
                json!({"devices": [{"name": "a"}]}),
            ),
        ] {
            let mut slice = json!({"spec": spec});
            ResourceSlices.default(&mut slice);
            assert_eq!(slice["spec"], kept);
        }
    }

    #[test]
    fn drivers_with_capitals_are_warned_of() {
        let warnings =
            |driver: &str| ResourceSlices.warnings(&json!({"spec": {"driver": driver}}), None);
        assert_eq!(warnings("d.example.com"), [""; 0]);
        assert_eq!(
            warnings("D.example.com"),
            [
                "spec.driver: driver names should be lowercase; \"D.example.com\" contains uppercase characters"
            ]
        );
    }

    #[test]
    fn resources_of_nodes_are_multiplied_by_one() {
        let mut slice = json!({"spec": {"devices": [{MAPPINGS: {"cpu": {}, "memory": {"allocationMultiplier": "2"}}}, 5]}});
        ResourceSlices.default(&mut slice);
        let maps = &slice["spec"]["devices"][0][MAPPINGS];
        assert_eq!(
            *maps,
            json!({"cpu": {"allocationMultiplier": "1"}, "memory": {"allocationMultiplier": "2"}})
        );
    }

    #[test]
    fn fields_of_features_that_are_off_stay_where_they_are() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let sent = json!({"spec": {"devices": [{"name": "d", MAPPINGS: {"cpu": {}},
            "attributes": {"a": {"ints": [1]}, "b": {"int": 1}}}]}});
        let mut slice = sent.clone();
        ResourceSlices.prepare_for_create(&context, &mut slice);
        let kept = json!([{"name": "d", "attributes": {"a": {}, "b": {"int": 1}}}]);
        assert_eq!(slice["spec"]["devices"], kept);
        let mut slice = sent.clone();
        ResourceSlices.prepare_for_update(&context, &mut slice, &sent);
        assert_eq!(slice, sent);
    }

    #[test]
    fn taints_get_the_time_that_they_lack() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let dated = json!({"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
        let mut slice = json!({"spec": {"devices": [{"name": "d", "taints": [dated,
            {"key": "b", "effect": "NoExecute"}]}, {"name": "e"}]}});
        ResourceSlices.prepare_for_create(&context, &mut slice);
        let taints = slice["spec"]["devices"][0]["taints"].take();
        assert_eq!(taints[0], dated);
        let added = taints[1]["timeAdded"].as_str().expect("a time");
        assert!(added.parse::<jiff::Timestamp>().is_ok(), "{added}");
        let mut odd = json!({"spec": []});
        ResourceSlices.prepare_for_update(&context, &mut odd, &json!({}));
        assert_eq!(odd, json!({"spec": []}));
    }
}
