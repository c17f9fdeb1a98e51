//! The form in which schemas of definitions are stored: without members that say nothing, as Go's encoder writes them.

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
const POINTERS: [&str; 19] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "default",
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

/// Removes what says nothing from a schema and those in it, such as `required: []`. Follows the tags of
/// `JSONSchemaProps`.
pub(super) fn drop_empty(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    for name in SCHEMAS {
        match members.get_mut(name) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(drop_empty),
            Some(schema) => drop_empty(schema),
            None => {}
        }
    }
    for name in NAMED_SCHEMAS {
        let schemas = members.get_mut(name).and_then(Value::as_object_mut);
        schemas
            .into_iter()
            .flat_map(Map::values_mut)
            .for_each(drop_empty);
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
    members.retain(|name, value| says_something(name, value));
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
        drop_empty(&mut found);
        assert_eq!(found, said);
        let around = |inner: &Value| {
            json!({"items": inner, "additionalProperties": inner, "not": inner, "allOf": [inner],
                "properties": {"a": inner}, "patternProperties": {"b": inner}})
        };
        let mut found = around(&around(&both));
        drop_empty(&mut found);
        assert_eq!(found, around(&around(&said)));
    }

    #[test]
    fn rules_keep_what_they_say() {
        let mut schema = json!({"externalDocs": {"url": ""}, "x-kubernetes-validations": [
            {"rule": "", "message": "", "messageExpression": "", "fieldPath": "", "reason": "",
                "optionalOldSelf": false},
            {"rule": "true", "reason": null, "optionalOldSelf": null}]});
        drop_empty(&mut schema);
        let rules = json!([{"rule": "", "reason": "", "optionalOldSelf": false}, {"rule": "true"}]);
        assert_eq!(
            schema,
            json!({"externalDocs": {}, "x-kubernetes-validations": rules})
        );
    }
}
