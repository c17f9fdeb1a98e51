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
