//! Merges a configuration into an object, and removes fields from an object. Follows `Merge` and `RemoveItems` of
//! structured-merge-diff.
//!
//! Null is a value like any other, and is merged, compared and stored as one; but an object or list that merges by its
//! members has nothing of null, and stays what it is. The other hard part is the order of list items: those of the
//! configuration are in its order, and those that only the object has in theirs. These stay behind an item that both
//! have if that is where the configuration has it too, and else come before it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::path::PathElement;
use super::schema::Schema;
use super::set::FieldSet;
use super::shape::Shape;
use super::walk::{common_shape, item_element};

/// Returns the object with the fields of the configuration, and all others as they were.
pub(super) fn merge(
    schema: Schema<'_>,
    path: &mut Vec<PathElement>,
    object: &Value,
    config: &Value,
) -> Value {
    let shape = common_shape(schema, path, Some(object), Some(config));
    match (shape, object, config) {
        (Shape::Leaf, _, config) => config.clone(),
        (_, object, Value::Null) => object.clone(),
        (Shape::Object, Value::Object(members), Value::Object(config)) => {
            let mut merged = members.clone();
            for (name, value) in config {
                path.push(PathElement::field(name));
                let old = members.get(name).unwrap_or(&Value::Null);
                let member = merge(schema, path, old, value);
                path.pop();
                merged.insert(name.clone(), member);
            }
            Value::Object(merged)
        }
        (Shape::Set | Shape::Keyed(_), Value::Array(items), Value::Array(config)) => {
            Value::Array(merge_items(schema, shape, path, items, config))
        }
        (_, _, config) => config.clone(),
    }
}

fn merge_items(
    schema: Schema<'_>,
    shape: Shape<'_>,
    path: &mut Vec<PathElement>,
    items: &[Value],
    config: &[Value],
) -> Vec<Value> {
    let element = |item: &Value| item_element(shape, item);
    let mut by_element = BTreeMap::new();
    for item in items {
        // Items that share a key are no part of what is merged.
        let repeated = |it: &mut &Value| *it = &Value::Null;
        let entry = by_element.entry(element(item));
        entry.and_modify(repeated).or_insert(item);
    }
    let configured: BTreeSet<_> = config.iter().map(element).collect();
    let mut merged = Vec::with_capacity(items.len() + config.len());
    let mut merge_next = |merged: &mut Vec<Value>, next: &Value| {
        let found = element(next);
        let object = by_element.get(&found).copied().unwrap_or(&Value::Null);
        path.extend(found);
        merged.push(merge(schema, path, object, next));
        path.pop();
    };
    let mut rest = config.iter();
    let shared = config.iter().map(element);
    let mut shared = shared.filter(|it| by_element.contains_key(it)).peekable();
    for item in items {
        let found = element(item);
        if !configured.contains(&found) {
            merged.push(item.clone());
            continue;
        }
        match shared.peek() {
            // It comes where the configuration has it.
            Some(next) if *next != found => {}
            Some(_) => {
                shared.next();
                for next in rest.by_ref() {
                    merge_next(&mut merged, next);
                    if element(next) == found {
                        break;
                    }
                }
            }
            // It shares its key with one that has come, and structured-merge-diff goes on in both lists.
            None => {
                if let Some(next) = rest.next() {
                    merge_next(&mut merged, next);
                }
            }
        }
    }
    for next in rest {
        merge_next(&mut merged, next);
    }
    merged
}

/// Returns the object without the paths of a set and everything below them. An object or list that loses all its
/// members stays, empty. An item whose key has a default may lose the key.
pub(super) fn remove(
    schema: Schema<'_>,
    path: &mut Vec<PathElement>,
    value: &Value,
    paths: &FieldSet,
) -> Value {
    let shape = schema.shape(path, value);
    let mut keep = |element: PathElement, value: &Value| {
        if paths.has(&element) {
            return None;
        }
        let Some(below) = paths.below(&element) else {
            return Some(value.clone());
        };
        path.push(element);
        let rest = remove(schema, path, value, below);
        path.pop();
        Some(rest)
    };
    match (shape, value) {
        (Shape::Object, Value::Object(members)) => {
            let kept = members.iter().filter_map(|(name, member)| {
                Some((name.clone(), keep(PathElement::field(name), member)?))
            });
            Value::Object(kept.collect())
        }
        (Shape::Set | Shape::Keyed(_), Value::Array(items)) => {
            let kept = items
                .iter()
                .filter_map(|item| keep(item_element(shape, item)?, item));
            Value::Array(kept.collect())
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(object: &Value, config: &Value) -> Value {
        merge(
            Schema::new("v1", "Pod", None),
            &mut Vec::new(),
            object,
            config,
        )
    }

    fn containers(names: &[&str]) -> Value {
        let items: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        json!({"spec": {"containers": items}})
    }

    #[test]
    fn members_and_items_merge_and_wholes_are_replaced() {
        let object = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {
            "containers": [{"name": "c", "image": "i", "tty": true}],
            "tolerations": [{"key": "x"}], "priority": 1}});
        let config = json!({"metadata": {"labels": {"b": "3"}}, "spec": {
            "containers": [{"name": "c", "image": "j"}], "tolerations": [{"key": "y"}],
            "priority": null, "hostNetwork": true, "dnsConfig": {"options": null}}});
        let expected = json!({"metadata": {"labels": {"a": "1", "b": "3"}}, "spec": {
            "containers": [{"name": "c", "image": "j", "tty": true}],
            "tolerations": [{"key": "y"}], "priority": null, "hostNetwork": true,
            "dnsConfig": {"options": null}}});
        assert_eq!(merged(&object, &config), expected);
    }

    #[test]
    fn null_takes_nothing_from_what_merges_by_its_members() {
        for (spec, config, expected) in [
            (
                json!({"containers": [{"name": "c"}]}),
                json!(null),
                json!({"containers": [{"name": "c"}]}),
            ),
            (
                json!({"containers": [{"name": "c"}]}),
                json!({"containers": null}),
                json!({"containers": [{"name": "c"}]}),
            ),
            (
                json!({"containers": []}),
                json!({"containers": null}),
                json!({"containers": null}),
            ),
            (
                json!({"dnsConfig": {}}),
                json!({"dnsConfig": null}),
                json!({"dnsConfig": null}),
            ),
            (
                json!({}),
                json!({"dnsConfig": {}}),
                json!({"dnsConfig": {}}),
            ),
            (
                json!({"nodeSelector": {"a": "b"}}),
                json!({"nodeSelector": null}),
                json!({"nodeSelector": null}),
            ),
            (
                json!({"hostname": "a"}),
                json!({"hostname": null}),
                json!({"hostname": null}),
            ),
        ] {
            let found = merged(&json!({"spec": spec}), &json!({"spec": config}));
            assert_eq!(found["spec"], expected, "{spec} and {config}");
        }
    }

    #[test]
    fn items_have_the_order_of_the_configuration() {
        for (object, config, expected) in [
            (&["a", "b"][..], &["b", "a"][..], &["b", "a"][..]),
            (&["a", "x", "b"], &["b", "a"], &["x", "b", "a"]),
            (&["a", "x", "b"], &["b", "n", "a"], &["x", "b", "n", "a"]),
            (
                &["a", "x", "y", "b"],
                &["n", "b", "a"],
                &["x", "y", "n", "b", "a"],
            ),
            (&["a", "b", "x"], &["b", "a"], &["b", "x", "a"]),
            (&["a", "x", "b"], &["a", "b"], &["a", "x", "b"]),
            (&["a", "b"], &["c", "a"], &["c", "a", "b"]),
            (&["x", "y"], &["a"], &["x", "y", "a"]),
            (&[], &["a"], &["a"]),
        ] {
            let found = merged(&containers(object), &containers(config));
            let names = found["spec"]["containers"].as_array().expect("a list");
            let names: Vec<_> = names
                .iter()
                .filter_map(|item| item["name"].as_str())
                .collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn removal_leaves_what_becomes_empty() {
        let object = json!({"metadata": {"name": "p", "labels": {"a": "1"}}, "spec": {
            "containers": [{"name": "c", "image": "i"}, {"name": "d"}], "volumes": [{"name": "v"}],
            "tolerations": [{"key": "x"}]}});
        let paths = json!({"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:containers": {
            "k:{\"name\":\"c\"}": {"f:image": {}}, "k:{\"name\":\"d\"}": {}},
            "f:volumes": {"k:{\"name\":\"v\"}": {}}}});
        let paths = FieldSet::from_json(&paths).expect("a set");
        let pod = Schema::new("v1", "Pod", None);
        let rest = remove(pod, &mut Vec::new(), &object, &paths);
        let expected = json!({"metadata": {"name": "p", "labels": {}}, "spec": {
            "containers": [{"name": "c"}], "volumes": [], "tolerations": [{"key": "x"}]}});
        assert_eq!(rest, expected);
    }
}
