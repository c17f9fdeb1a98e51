//! The form in which schemas of definitions are stored: without members that say nothing, and with numbers as Go's
//! encoder writes them.

use ringwatch_apimachinery::numbers;
use serde_json::{Map, Value};

/// Members with one schema, or with several in a list.
const SCHEMAS: [&str; 7] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "items",
    "not",
    "oneOf",
];

/// Members with schemas by names.
const NAMED_SCHEMAS: [&str; 4] = [
    "definitions",
    "dependencies",
    "patternProperties",
    "properties",
];

/// Members of which a zero, an empty text or an empty list says something else than none: pointers in Go.
const POINTERS: [&str; 20] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "default",
    "dependencies",
    "example",
    "externalDocs",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// Members that are flags, and pointers as well.
const FLAGS: [&str; 2] = ["x-kubernetes-preserve-unknown-fields", "optionalOldSelf"];

/// Members that are floats in Go.
const FLOATS: [&str; 3] = ["maximum", "minimum", "multipleOf"];

/// Members of which an empty list or map is forbidden at the root of a schema out of whose object the status is read.
const TOLD_AT_ROOT: [&str; 7] = [
    "allOf",
    "anyOf",
    "definitions",
    "enum",
    "oneOf",
    "patternProperties",
    "x-kubernetes-list-map-keys",
];

/// Removes what says nothing from the schema of a version, which may have a status, and from those in it, such as
/// `required: []`, and writes numbers as `1000` that were sent as `1000.0`. Follows the tags of `JSONSchemaProps`. What
/// is forbidden even if it is empty is left to validation.
pub(super) fn drop_empty(schema: &mut Value, has_status: bool) {
    let Value::Object(members) = schema else {
        return;
    };
    let is_told = |(name, value): (&String, &Value)| {
        let is_empty = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty);
        (has_status && is_empty && TOLD_AT_ROOT.contains(&name.as_str()))
            .then(|| (name.clone(), value.clone()))
    };
    let told: Vec<_> = members.iter().filter_map(is_told).collect();
    drop_empty_members(members);
    members.extend(told);
}

fn drop_empty_of(schema: &mut Value) {
    if let Value::Object(members) = schema {
        drop_empty_members(members);
    }
}

fn drop_empty_members(members: &mut Map<String, Value>) {
    for name in SCHEMAS {
        match members.get_mut(name) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(drop_empty_of),
            Some(schema) => drop_empty_of(schema),
            None => {}
        }
    }
    for name in NAMED_SCHEMAS {
        let schemas = members.get_mut(name).and_then(Value::as_object_mut);
        schemas
            .into_iter()
            .flat_map(Map::values_mut)
            .for_each(drop_empty_of);
    }
    let rules = members.get_mut("x-kubernetes-validations");
    for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(rule) = rule {
            rule.retain(|name, value| name == "rule" || says_something(name, value));
        }
    }
    if let Some(Value::Object(documents)) = members.get_mut("externalDocs") {
        documents.retain(|name, value| says_something(name, value));
    }
    for name in FLOATS {
        if let Some(float) = members.get_mut(name).filter(|it| it.is_number()) {
            *float = float.as_f64().map_or(Value::Null, Value::from);
            numbers::normalize(float);
        }
    }
    let is_list = members.get("type").is_some_and(|it| it == "array");
    members.retain(|name, value| {
        // Items that are no schema are written as null, and must be one in a list.
        let no_items = name == "items" && !is_list && value.as_array().is_some_and(Vec::is_empty);
        says_something(name, value) && !no_items
    });
}

fn says_something(name: &str, value: &Value) -> bool {
    let is_pointer = POINTERS.contains(&name) || FLAGS.contains(&name) || name == "reason";
    match value {
        Value::Null => false,
        _ if is_pointer => true,
        Value::Bool(flag) => *flag,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_says_nothing_goes_at_all_levels() {
        let empty = json!({
            "type": "", "description": "", "format": "", "pattern": "", "title": "", "nullable": false,
            "exclusiveMaximum": false, "uniqueItems": false, "x-kubernetes-embedded-resource": false,
            "x-kubernetes-int-or-string": false, "x-kubernetes-list-map-keys": [], "enum": [],
            "required": [], "allOf": [], "anyOf": [], "oneOf": [], "properties": {}, "not": null,
            "default": null, "maximum": null, "x-kubernetes-validations": [], "items": null,
        });
        let said = json!({
            "default": "", "maximum": 0, "minLength": 0, "x-kubernetes-list-type": "",
            "x-kubernetes-preserve-unknown-fields": false, "additionalProperties": false,
            "enum": [null, ""], "example": {"a": []}, "externalDocs": {},
        });
        let mut both = empty.clone();
        for (name, value) in said.as_object().into_iter().flatten() {
            both[name] = value.clone();
        }
        let mut found = both.clone();
        drop_empty(&mut found, false);
        assert_eq!(found, said);
        let around = |inner: &Value| {
            json!({"items": inner, "additionalProperties": inner, "not": inner, "allOf": [inner],
                "properties": {"a": inner}, "patternProperties": {"b": inner}})
        };
        let mut found = around(&around(&both));
        drop_empty(&mut found, false);
        assert_eq!(found, around(&around(&said)));
    }

    #[test]
    fn numbers_are_as_go_writes_them() {
        let numbers = |number: &str| -> Value {
            let schema = format!(
                r#"{{"maximum":{number},"minimum":{number},"multipleOf":{number},"default":{{"a":[1.0]}},"enum":[1.0]}}"#
            );
            let schema = format!(r#"{{"anyOf":[{schema}],"properties":{{"a":{schema}}}}}"#);
            serde_json::from_str(&schema).expect("a schema")
        };
        let mut found = numbers("1000.0");
        drop_empty(&mut found, false);
        assert_eq!(found.to_string(), numbers("1000").to_string());
        let mut found = json!({"maximum": i64::MAX, "default": i64::MAX});
        drop_empty(&mut found, false);
        let rounded = 9_223_372_036_854_776_000_u64;
        assert_eq!(found, json!({"maximum": rounded, "default": i64::MAX}));
    }

    #[test]
    fn what_is_forbidden_even_if_it_is_empty_stays() {
        let inner = json!({"dependencies": {}, "enum": [], "items": []});
        let list = json!({"type": "array", "items": []});
        let schema =
            json!({"enum": [], "definitions": {}, "required": [], "not": inner, "items": list});
        for (has_status, kept) in [
            (false, json!({"not": {"dependencies": {}}, "items": list})),
            (
                true,
                json!({"enum": [], "definitions": {}, "not": {"dependencies": {}}, "items": list}),
            ),
        ] {
            let mut found = schema.clone();
            drop_empty(&mut found, has_status);
            assert_eq!(found, kept);
        }
    }

    #[test]
    fn rules_keep_what_they_say() {
        let mut schema = json!({"externalDocs": {"url": ""}, "x-kubernetes-validations": [
            {"rule": "", "message": "", "messageExpression": "", "fieldPath": "", "reason": "",
                "optionalOldSelf": false},
            {"rule": "true", "reason": null, "optionalOldSelf": null}]});
        drop_empty(&mut schema, false);
        let rules = json!([{"rule": "", "reason": "", "optionalOldSelf": false}, {"rule": "true"}]);
        assert_eq!(
            schema,
            json!({"externalDocs": {}, "x-kubernetes-validations": rules})
        );
    }
}
