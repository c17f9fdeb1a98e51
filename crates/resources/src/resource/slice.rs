//! ResourceSlices: the devices that a driver offers.

use ringwatch_apimachinery::accessor::format_time;
use ringwatch_apimachinery::path::{get_mut, set};
use ringwatch_registry::RequestContext;
use serde_json::Value;

use crate::strategy::kind_hooks::KindHooks;

/// The behaviour of ResourceSlices: a taint of a device without `timeAdded` gets the time of the write.
#[derive(Debug)]
pub(super) struct ResourceSlices;

impl KindHooks for ResourceSlices {
    /// Drops an empty list of devices or counters. Only where both are there it is told that they are, since one slice
    /// has one of both.
    fn default(&self, object: &mut Value) {
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

    fn prepare_for_create(&self, context: &RequestContext, object: &mut Value) {
        date_taints(context, object);
    }

    fn prepare_for_update(&self, context: &RequestContext, object: &mut Value, _old: &Value) {
        date_taints(context, object);
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
