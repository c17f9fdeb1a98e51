//! Errors in values that have not changed since an older object are ignored.

use serde_json::{Value, json};

use super::lines;
use crate::schema::StructuralSchema;

fn schema() -> StructuralSchema {
    let strict = json!({"type": "string", "enum": ["fine"]});
    let holder = json!({"type": "object", "properties": {
        "key": {"type": "string"}, "field": strict, "other": {"type": "string"}}});
    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key"],
        "items": {"type": "object", "required": ["key"], "properties": holder["properties"]}});
    let schema = json!({"type": "object", "properties": {
        "field": strict, "struct": holder, "list": keyed,
        "map": {"type": "object", "additionalProperties": holder},
        "whole": {"type": "array", "items": strict},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}});
    StructuralSchema::read(&schema, false).unwrap()
}

fn object(field: &str, other: &str) -> Value {
    let held = json!({"field": field, "other": other});
    json!({"field": field, "struct": held, "map": {"a": held},
        "list": [{"key": "y", "field": field, "other": other}, {"key": "x", "field": field}]})
}

/// Returns where something is wrong with an object that was another one before.
fn wrong(object: &Value, old: &Value) -> Vec<String> {
    let errors = schema().validate(object, Some(old));
    errors.into_iter().map(|error| error.field).collect()
}

#[test]
fn what_has_not_changed_is_let_pass() {
    let old = object("bad", "");
    assert_eq!(lines(&schema().validate(&old, None)).len(), 5);
    assert_eq!(wrong(&old, &old), [""; 0]);
    // Beside what has changed, in structs, in maps and in items with the same keys, wherever these are.
    let mut next = object("bad", "new");
    next["list"].as_array_mut().unwrap().reverse();
    assert_eq!(wrong(&next, &old), [""; 0]);
}

#[test]
fn what_has_changed_is_refused() {
    let everywhere = [
        "field",
        "list[0].field",
        "list[1].field",
        "map.a.field",
        "struct.field",
    ];
    let mut found = wrong(&object("worse", ""), &object("bad", ""));
    found.sort();
    assert_eq!(found, everywhere);
    // Items without keys are no older ones.
    let whole = |items: Value| json!({"whole": items});
    assert_eq!(
        wrong(&whole(json!(["bad", "fine"])), &whole(json!(["bad"]))),
        ["whole[0]"]
    );
    let new_item = json!({"list": [{"key": "x", "field": "bad"}]});
    assert_eq!(wrong(&new_item, &json!({"list": []})), ["list[0].field"]);
}

#[test]
fn lists_that_were_wrong_may_stay_so() {
    let set = |items: Value| json!({"set": items});
    let (twice, more) = (set(json!(["a", "a"])), set(json!(["a", "a", "b"])));
    assert_eq!(wrong(&more, &twice), [""; 0]);
    assert_eq!(wrong(&twice, &set(json!(["a"]))), ["set[1]"]);
}

#[test]
fn what_has_not_changed_still_chooses_among_alternatives() {
    let kinds = |kind: &str| json!({"properties": {"kind": {"enum": [kind]}}});
    let schema = json!({"type": "object", "oneOf": [kinds("a"), kinds("b")], "not": kinds("c"),
        "properties": {"kind": {"type": "string"}, "size": {"type": "integer"}}});
    let schema = StructuralSchema::read(&schema, false).unwrap();
    let object = |kind: &str, size: i32| json!({"kind": kind, "size": size});
    let errors = |kind| schema.validate(&object(kind, 2), Some(&object(kind, 1)));
    assert_eq!(errors("a"), []);
    // That none fits, why not the closest one, and that what must not fit does.
    assert_eq!(lines(&errors("c")).len(), 3);
}

#[test]
fn what_has_members_without_a_schema_counts_as_changed() {
    let few = |more: Value| {
        let mut node = json!({"type": "object", "maxProperties": 1});
        node.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let schema = json!({"type": "object", "properties": {"spec": node}});
        let schema = StructuralSchema::read(&schema, false).unwrap();
        let object = json!({"spec": {"a": 1, "b": 2}});
        schema.validate(&object, Some(&object)).len()
    };
    let number = json!({"type": "integer"});
    assert_eq!(
        few(json!({"x-kubernetes-preserve-unknown-fields": true})),
        1
    );
    assert_eq!(few(json!({"additionalProperties": number})), 0);
    assert_eq!(few(json!({"properties": {"a": number, "b": number}})), 0);
    let one = json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": number}});
    assert_eq!(few(one), 1);
}

#[test]
fn items_with_keys_may_change_places() {
    let item = json!({"type": "object", "required": ["key"],
        "properties": {"key": {"type": "string"}, "value": {"type": "string"}}});
    let list = json!({"type": "array", "maxItems": 1, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key"], "items": item});
    let schema = json!({"type": "object", "properties": {"list": list}});
    let schema = StructuralSchema::read(&schema, false).unwrap();
    let object = |keys: [&str; 2]| json!({"list": keys.map(|key| json!({"key": key}))});
    let errors = |new: &Value| schema.validate(new, Some(&object(["a", "b"]))).len();
    assert_eq!(errors(&object(["b", "a"])), 0);
    assert_eq!(errors(&object(["b", "c"])), 1);
    let mut changed = object(["b", "a"]);
    changed["list"][0]["value"] = json!("x");
    assert_eq!(errors(&changed), 1);
}

#[test]
fn the_first_of_several_items_with_one_key_is_the_older_one() {
    let old = json!({"list": [{"key": "x", "field": "bad"}, {"key": "x", "field": "worse"}]});
    let only = |field: &str| json!({"list": [{"key": "x", "field": field}]});
    assert_eq!(wrong(&only("bad"), &old), [""; 0]);
    assert_eq!(wrong(&only("worse"), &old), ["list[0].field"]);
    let none = json!({"list": [{"key": null, "field": "bad"}]});
    assert!(
        wrong(&json!({"list": [none["list"][0], none["list"][0]]}), &none)
            .contains(&"list[0].field".to_owned())
    );
}

#[test]
fn the_type_of_an_object_is_not_compared() {
    let schema = json!({"type": "object", "properties": {"kind": {"type": "string", "enum": ["Other"]},
        "spec": {"type": "object", "properties": {"kind": {"type": "string", "enum": ["Other"]}}}}});
    let schema = StructuralSchema::read(&schema, false).unwrap();
    let object =
        |more: Value| json!({"kind": "Widget", "spec": {"kind": "Widget"}, "metadata": more});
    let errors = schema.validate(&object(json!({"a": 1})), Some(&object(json!({"a": 2}))));
    let fields: Vec<_> = errors.into_iter().map(|error| error.field).collect();
    assert_eq!(fields, ["kind"]);
}
