//! Strategic merge patches: merge patches that merge the lists of built-in kinds by key.
//!
//! Follows `mergeMap` of apimachinery's `strategicpatch`. The hard part is the directives, which are members among the
//! data: `$patch` deletes or replaces a map or a list's item, `$retainKeys` removes members that it does not name,
//! `$deleteFromPrimitiveList/x` removes from a list, `$setElementOrder/x` orders one. They are obeyed only where the
//! object has something to merge with. What it does not have is taken as it is sent, and a directive that stays in it
//! is a field that the type does not have.

mod lists;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod rules_tests;

use std::collections::HashSet;

use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::go_values::go_type;
use serde_json::{Map, Value};

use self::lists::{ItemList, merge_list, merge_list_in_order};
use super::strategic_keys::{ListMerge, list_merge, replaces_map};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Maximum nesting of a patch.
const DEPTH_MAX: usize = 128;

/// Applies a strategic merge patch, and returns the object after it.
pub(super) fn merge(object: &Value, patch: &Value) -> Result<Value, Error> {
    let current = object.as_object().cloned().unwrap_or_default();
    let kind = object.get("kind").and_then(Value::as_str);
    let place = FieldPosition {
        kind: kind.unwrap_or_default(),
        name: "",
    };
    match patch {
        Value::Object(patch) => merge_map(current, patch, place, DEPTH_MAX).map(Value::Object),
        _ => Err(Error::Unprocessable),
    }
}

/// The position of a map in the object.
#[derive(Clone, Copy)]
struct FieldPosition<'a> {
    /// The kind of the whole object.
    kind: &'a str,
    /// The member that holds the map, or the list that it is in.
    name: &'a str,
}

impl<'a> FieldPosition<'a> {
    fn below(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// Returns the list of this name in the map.
    fn list(self, name: &'a str) -> ItemList<'a> {
        ItemList {
            by: list_merge(self.kind, self.name, name),
            place: self.below(name),
        }
    }
}

fn merge_map(
    mut merged: Map<String, Value>,
    patch: &Map<String, Value>,
    place: FieldPosition<'_>,
    depth: usize,
) -> Result<Map<String, Value>, Error> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(bad("the patch is nested too deeply"));
    };
    match directive(patch)? {
        None => {}
        Some(Directive::Delete) => return Ok(Map::new()),
        Some(Directive::Replace) => {
            let mut replaced = patch.clone();
            replaced.remove(PATCH);
            return Ok(replaced);
        }
    }
    retain(&mut merged, patch)?;
    // Lists with an order are merged first, so that what is deleted from them is deleted last.
    let mut in_order = HashSet::new();
    for (key, order) in patch
        .iter()
        .filter(|(key, _)| key.starts_with(ELEMENT_ORDER))
    {
        let list = directed(key, ELEMENT_ORDER)
            .ok_or_else(|| bad("invalid patch format of setElementOrder list"))?;
        merge_list_in_order(&mut merged, patch.get(list), order, place.list(list), depth)?;
        in_order.insert(list);
    }
    for (key, value) in patch {
        let deletes = key.starts_with(DELETE_FROM);
        let name = match deletes {
            true => directed(key, DELETE_FROM)
                .ok_or_else(|| bad("invalid patch format of primitive list"))?,
            false => key,
        };
        let is_done =
            key == RETAIN_KEYS || key.starts_with(ELEMENT_ORDER) || in_order.contains(&**key);
        if is_done {
            continue;
        }
        if value.is_null() {
            merged.remove(name);
        } else {
            merge_member(&mut merged, name, value, deletes, place, depth)?;
        }
    }
    Ok(merged)
}

/// Returns the name after the slash of a directive about one member.
fn directed<'a>(key: &'a str, directive: &str) -> Option<&'a str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

/// Removes the members that do not stay, if the patch has `$retainKeys`.
fn retain(merged: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), Error> {
    let Some(names) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let wrong = || bad("invalid patch format of retainKeys");
    let names = names.as_array().ok_or_else(wrong)?.iter();
    let names: HashSet<&str> = names.filter_map(Value::as_str).collect();
    let named = |key: &str| names.contains(key);
    let mut set = patch.iter().filter(|(key, value)| {
        let is_about_list = key.starts_with(DELETE_FROM) || key.starts_with(ELEMENT_ORDER);
        *key != RETAIN_KEYS && !is_about_list && !value.is_null()
    });
    if !set.all(|(key, _)| named(key)) {
        return Err(wrong());
    }
    merged.retain(|key, _| named(key));
    Ok(())
}

/// Merges a member that is not null; `deletes` if it is that of a directive to delete from a list. kube-apiserver looks
/// at the directive only when it has the list before it: one that has something else is merged as the member itself.
fn merge_member(
    merged: &mut Map<String, Value>,
    name: &str,
    value: &Value,
    deletes: bool,
    place: FieldPosition<'_>,
    depth: usize,
) -> Result<(), Error> {
    match (merged.get_mut(name), value) {
        (Some(Value::Object(_)), Value::Object(patch))
            if replaces_map(place.kind, place.name, name) =>
        {
            merged.insert(name.to_owned(), Value::Object(patch.clone()));
        }
        (Some(Value::Object(own)), Value::Object(patch)) => {
            *own = merge_map(std::mem::take(own), patch, place.below(name), depth)?;
        }
        // Go has an empty list as none.
        (Some(Value::Array(own)), Value::Array(_)) if own.is_empty() && deletes => {}
        (Some(Value::Array(own)), Value::Array(patch)) if !own.is_empty() => {
            *own = merge_list(std::mem::take(own), patch, place.list(name), deletes, depth)?;
        }
        (own, _) => {
            // Types are merged with none but themselves.
            let fits = own.is_some_and(|own| go_type(own) == go_type(value));
            if deletes && !fits {
                return Ok(());
            }
            match taken(value, false) {
                Some(value) => drop(merged.insert(name.to_owned(), value)),
                None => drop(merged.remove(name)),
            }
        }
    }
    Ok(())
}

/// The value of `$patch`.
#[derive(PartialEq, Eq)]
enum Directive {
    Delete,
    Replace,
}

fn directive(patch: &Map<String, Value>) -> Result<Option<Directive>, Error> {
    match patch.get(PATCH).map(|it| (it, it.as_str())) {
        None => Ok(None),
        Some((_, Some("delete"))) => Ok(Some(Directive::Delete)),
        Some((_, Some("replace"))) => Ok(Some(Directive::Replace)),
        Some((other, _)) => Err(failed(format!(
            "unknown patch type: {} in map: {}",
            super::go_words(other),
            super::go_words(&Value::Object(patch.clone()))
        ))),
    }
}

/// Returns what a patch has where the object has nothing: without the maps that have `$patch`, and without the nulls of
/// maps unless these stay. `None` if nothing is left of it.
fn taken(value: &Value, nulls_stay: bool) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let stays = |value: &Value| nulls_stay || !value.is_null();
            if members.get(PATCH).is_some_and(stays) {
                return None;
            }
            let members = members.iter().filter(|(_, value)| stays(value));
            let left =
                members.filter_map(|(key, value)| Some((key.clone(), taken(value, nulls_stay)?)));
            Some(Value::Object(left.collect()))
        }
        Value::Array(items) => {
            let items = items.iter().filter_map(|item| taken(item, nulls_stay));
            Some(Value::Array(items.collect()))
        }
        scalar => Some(scalar.clone()),
    }
}

/// Returns the error about a patch that Kubernetes does not translate.
fn failed(why: impl Into<String>) -> Error {
    Error::Untranslated(why.into())
}

fn bad(why: &str) -> Error {
    Error::BadRequest(why.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(object: Value, patch: Value) -> Value {
        merge(&object, &patch).expect("a patch that fits")
    }

    #[test]
    fn lists_of_objects_merge_by_their_key_with_the_patch_first() {
        let object = json!({"spec": {"containers": [{"name": "c", "image": "x", "tty": true}]}});
        let patch = json!({"spec": {"containers": [{"name": "side", "image": "y"},
            {"name": "c", "tty": null}]}});
        assert_eq!(
            patched(object, patch),
            json!({"spec": {"containers": [{"name": "side", "image": "y"},
                {"name": "c", "image": "x"}]}})
        );
    }

    #[test]
    fn directives_delete_replace_and_order() {
        let object = json!({"spec": {"containers": [{"name": "a"}, {"name": "b", "image": "x"}],
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {}}},
            "metadata": {"finalizers": ["x", "y"]}});
        let patch = json!({"spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
            "containers": [{"name": "a", "$patch": "delete"},
                {"name": "c"}, {"name": "b", "tty": true, "image": null}],
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["x"], "finalizers": ["z"]}});
        assert_eq!(
            patched(object, patch),
            json!({"spec": {"containers": [{"name": "c"}, {"name": "b", "tty": true}],
                "strategy": {"type": "Recreate"}}, "metadata": {"finalizers": ["z", "y"]}})
        );
    }

    #[test]
    fn what_a_patch_does_not_name_stays_where_it_was() {
        let named = |names: &[&str]| -> Value {
            let items: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"spec": {"containers": items}})
        };
        for (live, patch, expected) in [
            (&["a", "b", "c"][..], &["c"][..], &["a", "b", "c"][..]),
            (&["a", "b", "c"], &["c", "a"], &["b", "c", "a"]),
            (&["a", "b"], &["new"], &["new", "a", "b"]),
            (&["a", "b", "c"], &["b", "new"], &["a", "b", "new", "c"]),
        ] {
            assert_eq!(
                patched(named(live), named(patch)),
                named(expected),
                "{patch:?}"
            );
        }
    }

    #[test]
    fn a_list_is_replaced_by_what_stands_beside_the_directive() {
        let object = json!({"spec": {"containers": [{"name": "a", "tty": true}, {"name": "b"}]}});
        let patch =
            json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"$patch": "replace"}]}});
        let expected = json!({"spec": {"containers": [{"name": "a", "image": "x"}]}});
        assert_eq!(patched(object, patch), expected);
    }

    #[test]
    fn kinds_differ_in_how_their_lists_are_merged() {
        let conditions = |kind: &str| {
            let object = json!({"kind": kind, "status": {"conditions": [{"type": "A"}]}});
            let patch = json!({"status": {"conditions": [{"type": "B"}]}});
            patched(object, patch)["status"]["conditions"]
                .as_array()
                .map(Vec::len)
        };
        assert_eq!(conditions("Pod"), Some(2));
        assert_eq!(conditions("CertificateSigningRequest"), Some(1));
        let budget = json!({"kind": "PodDisruptionBudget", "spec": {"selector": {"matchLabels": {"a": "b"}}}});
        let patch = json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}});
        assert_eq!(patched(budget, patch.clone())["spec"], patch["spec"]);
    }

    #[test]
    fn other_lists_and_scalars_are_replaced() {
        let object = json!({"spec": {"tolerations": [{"key": "a"}], "nodeName": "n",
            "ports": [{"port": 80, "name": "x"}]}});
        let patch = json!({"spec": {"tolerations": [{"key": "b"}], "nodeName": null,
            "ports": [{"port": 80, "name": "y"}, {"port": 81}]}});
        assert_eq!(
            patched(object, patch),
            json!({"spec": {"tolerations": [{"key": "b"}],
                "ports": [{"port": 80, "name": "y"}, {"port": 81}]}})
        );
    }

    #[test]
    fn bad_patches_are_refused() {
        for patch in [
            json!([]),
            json!({"spec": {"$patch": "explode"}}),
            json!({"spec": {"$patch": "merge"}}),
            json!({"spec": {"$retainKeys": ["a"], "b": 1}}),
            json!({"spec": {"containers": [{"image": "x"}]}}),
            json!({"spec": {"containers": [{"image": "x"}, {"$patch": "replace"}]}}),
            json!({"spec": {"containers": [{"$patch": "replace"}, {"$patch": "explode"}]}}),
            json!({"spec": {"containers": [{"$patch": "replace"}, {"$patch": "delete"}]}}),
            json!({"spec": {"containers": [1]}}),
            json!({"spec": {"$setElementOrder/containers": "a"}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": null}}),
            json!({"spec": {"$setElementOrder/containers": [{"image": "x"}], "containers": [{"name": "a"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
                "containers": [{"name": "b"}, {"name": "a"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "a"}],
                "containers": [{"name": "a"}, {"$patch": "replace"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"image": "x"}]}}),
            json!({"spec": {"$setElementOrder": [{"name": "a"}]}}),
            json!({"spec": {"$deleteFromPrimitiveList": ["a"]}}),
            json!({"spec": {"$retainKeys": ["a"], "$other": 1}}),
            json!({"metadata": {"$setElementOrder/finalizers": ["a", "b"], "finalizers": ["b", "a"]}}),
            json!({"metadata": {"finalizers": [1]}}),
            json!({"metadata": {"finalizers": [["a"]]}}),
        ] {
            let object =
                json!({"metadata": {"finalizers": ["a"]}, "spec": {"containers": [{"name": "a"}]}});
            assert!(merge(&object, &patch).is_err(), "{patch}");
        }
    }

    #[test]
    fn equal_keys_stay_apart_where_nothing_is_merged() {
        let (one, other) = (
            json!({"type": "InternalIP", "address": "10.0.0.1"}),
            json!({"type": "InternalIP", "address": "fd00::1"}),
        );
        let host = json!({"type": "Hostname", "address": "h"});
        let addresses = |live: Option<Value>, patch: Value| {
            let object = json!({"kind": "Node", "status": live.map_or_else(|| json!({}), |it| json!({"addresses": it}))});
            let patched = patched(object, json!({"status": {"addresses": patch}}));
            patched["status"]["addresses"].clone()
        };
        let replace = json!({"$patch": "replace"});
        let both = json!([one, other]);
        let live = || Some(json!([host]));
        // As kubelets and cloud providers send them.
        assert_eq!(addresses(live(), json!([one, other, replace])), both);
        assert_eq!(addresses(live(), json!([replace, one, other])), both);
        assert_eq!(addresses(None, json!([one, other])), both);
        assert_eq!(addresses(Some(json!([])), json!([one, other])), both);
        assert_eq!(addresses(None, json!([one, other, replace])), both);
        assert_eq!(
            addresses(live(), json!([one, host, other, replace])),
            json!([one, other, host]),
            "items of one key stand together"
        );
        // Without the directive, they are one item of a list that is there.
        assert_eq!(addresses(live(), json!([one, other])), json!([other, host]));
        assert_eq!(
            addresses(live(), json!([one, one, replace])),
            json!([one, one])
        );
    }

    /// Parts that the object does not have are not merged: their directives and nulls are those of their type's fields.
    #[test]
    fn new_items_and_replaced_maps_keep_their_directives() {
        let object = json!({"spec": {"containers": [{"name": "a"}], "selector": {"a": "b"}}});
        let items = json!([{"name": "b", "env": [{"name": "X", "$patch": "delete"}], "resources": {"limits": {"cpu": null}}}]);
        let containers = |patch: Value| {
            let patched = patched(object.clone(), json!({"spec": patch}));
            patched["spec"]["containers"].clone()
        };
        assert_eq!(containers(json!({"containers": items}))[0], items[0]);
        let replaced = json!([{"$patch": "replace"}, items[0]]);
        assert_eq!(containers(json!({"containers": replaced})), items);
        assert_eq!(
            containers(json!({"$patch": "replace", "containers": items})),
            items
        );
        // But of a list that is new nulls and items with directives are left out.
        let patch =
            json!({"spec": {"initContainers": [items[0], {"name": "c", "$patch": "delete"}]}});
        let expected = json!([{"name": "b", "env": [], "resources": {"limits": {}}}]);
        assert_eq!(patched(object, patch)["spec"]["initContainers"], expected);
    }

    #[test]
    fn new_maps_are_taken_with_unknown_directives() {
        let config = json!({"$setElementOrder/nameservers": ["1.2.3.4"], "nameservers": ["5.6.7.8"], "$retainKeys": []});
        let object = json!({"spec": {}});
        let patch = json!({"spec": {"dnsConfig": config}});
        assert_eq!(patched(object, patch)["spec"]["dnsConfig"], config);
    }

    #[test]
    fn a_dollar_makes_no_directive() {
        let object = json!({"kind": "StorageClass", "parameters": {"a": "b"}});
        let patch = json!({"parameters": {"$c": "d", "$delete": null}});
        let expected = json!({"a": "b", "$c": "d"});
        assert_eq!(patched(object, patch)["parameters"], expected);
    }

    #[test]
    fn lists_that_are_replaced_keep_items_with_directives() {
        let object = json!({"spec": {"tolerations": [{"key": "a"}]}});
        let tolerations = json!([{"key": "a", "$patch": "delete"}, {"key": null}]);
        let patch = json!({"spec": {"tolerations": tolerations}});
        assert_eq!(patched(object, patch)["spec"]["tolerations"], tolerations);
    }

    #[test]
    fn directives_to_delete_are_members_where_there_is_no_list_of_scalars() {
        let object = json!({"metadata": {"finalizers": ["x"], "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "args": ["1", "2"]}], "nodeName": "n"}});
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": null,
                "$deleteFromPrimitiveList/labels": {"c": "d"}, "$deleteFromPrimitiveList/annotations": {"e": "f"}},
            "spec": {"$deleteFromPrimitiveList/nodeName": "m", "$deleteFromPrimitiveList/containers":
                [{"name": "c", "image": "i", "$deleteFromPrimitiveList/args": ["1"]}]}});
        let expected = json!({"metadata": {"labels": {"a": "b", "c": "d"}},
            "spec": {"containers": [{"name": "c", "image": "i", "args": ["2"]}], "nodeName": "m"}});
        assert_eq!(patched(object, patch), expected);
    }

    #[test]
    fn orders_are_of_all_lists_and_of_what_new_items_replace() {
        let object = json!({"spec": {"containers": [{"name": "c", "args": ["1", "2", "3"]}, {"name": "d"}]}});
        let patch =
            json!({"spec": {"containers": [{"name": "c", "$setElementOrder/args": ["3", "1"]}]}});
        let args = &patched(object.clone(), patch)["spec"]["containers"][0]["args"];
        assert_eq!(*args, json!(["2", "3", "1"]));
        let names = |patch: Value| {
            let patched = patched(object.clone(), json!({"spec": patch}));
            let containers = patched["spec"]["containers"].as_array().cloned();
            let names = containers
                .into_iter()
                .flatten()
                .map(|it| it["name"].clone());
            names.collect::<Value>()
        };
        let items = json!([{"name": "d", "$patch": "delete"}, {"name": "n"}]);
        assert_eq!(names(json!({"containers": items})), json!(["n", "c"]));
        let in_order = json!({"$setElementOrder/containers": [{"name": "n"}], "containers": items});
        assert_eq!(names(in_order), json!(["c", "n"]));
        let unnamed = json!({"$setElementOrder/containers": [], "containers": [{"name": "n"}]});
        assert_eq!(names(unnamed), json!(["c", "d", "n"]));
    }

    #[test]
    fn sets_have_each_item_once() {
        let object = json!({"metadata": {"finalizers": ["x", "y", "x"]}});
        let patch = json!({"metadata": {"finalizers": ["z", "y", "z"]}});
        assert_eq!(
            patched(object, patch)["metadata"]["finalizers"],
            json!(["z", "x", "y"])
        );
    }

    #[test]
    fn lists_of_new_items_are_taken_as_they_are() {
        let object = json!({"spec": {"containers": [{"name": "a"}]}});
        let ports = json!([{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]);
        let patch = json!({"spec": {"containers": [{"name": "b", "ports": ports}, {"name": "a", "ports": ports}]}});
        let patched = patched(object, patch);
        assert_eq!(patched["spec"]["containers"][0]["ports"], ports);
        assert_eq!(patched["spec"]["containers"][1]["ports"], ports);
    }
}
