//! Random objects and merge patches against the pseudocode of RFC 7386, and what must hold of all of them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::merge;

/// Returns the value after a patch, if there is one, by the pseudocode of RFC 7386. Unlike there, what is new has no
/// nulls even in lists.
fn model(target: Option<&Value>, patch: &Value) -> Option<Value> {
    match (target, patch) {
        (_, Value::Null) => None,
        (target, Value::Object(patch)) => {
            let mut result = target
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            for (name, value) in patch {
                let after = model(result.get(name), value);
                result.remove(name);
                result.extend(after.map(|after| (name.clone(), after)));
            }
            Some(Value::Object(result))
        }
        (target, Value::Array(items)) if !target.is_some_and(Value::is_object) => {
            let item = |item: &Value| model(None, item).unwrap_or(Value::Null);
            Some(items.iter().map(item).collect())
        }
        (_, other) => Some(other.clone()),
    }
}

/// Returns the patch that makes one object of another without nulls.
fn difference(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let gone = from.keys().filter(|name| !to.contains_key(*name));
    let mut patch: Map<_, _> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in to {
        match (from.get(name), value) {
            (Some(Value::Object(from)), Value::Object(to)) => {
                patch.insert(name.clone(), difference(from, to).into());
            }
            (Some(own), value) if own == value => {}
            (_, value) => drop(patch.insert(name.clone(), value.clone())),
        }
    }
    patch
}

fn merged(object: &Map<String, Value>, patch: &Map<String, Value>) -> Map<String, Value> {
    let mut merged = object.clone();
    merge(&mut merged, patch);
    merged
}

/// Trees of few names, with nulls or without.
fn tree(nulls: bool) -> impl Strategy<Value = Map<String, Value>> {
    let leaf = prop_oneof![
        3 => (0..3).prop_map(Value::from),
        1 => Just(json!("x")),
        1 => Just(if nulls { Value::Null } else { json!(true) }),
    ];
    let value = leaf.prop_recursive(3, 24, 3, |inner| {
        prop_oneof![
            2 => members(inner.clone()).prop_map(Value::Object),
            1 => prop::collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    });
    members(value)
}

fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let members = prop::collection::btree_map("[abc]", value, 0..4);
    members.prop_map(|members| members.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn patches_mean_what_the_pseudocode_says(object in tree(true), patch in tree(true)) {
        let expected = model(Some(&object.clone().into()), &patch.clone().into());
        let once = merged(&object, &patch);
        prop_assert_eq!(Some(Value::Object(once.clone())), expected);
        // Again it changes nothing but the nulls of a list that has taken the place of a map, and a patch of nothing
        // changes nothing.
        let twice = merged(&once, &patch);
        prop_assert_eq!(Some(Value::Object(twice.clone())), model(Some(&once.into()), &patch.clone().into()));
        prop_assert_eq!(merged(&twice, &patch), twice.clone());
        prop_assert_eq!(merged(&twice, &Map::new()), twice);
    }

    #[test]
    fn the_difference_of_two_objects_makes_one_of_the_other(from in tree(false), to in tree(false)) {
        prop_assert_eq!(merged(&from, &difference(&from, &to)), to);
    }
}
