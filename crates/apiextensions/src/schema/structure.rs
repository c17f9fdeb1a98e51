//! The rules of structural schemas, in kube-apiserver's words.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::kind::JsonType;
use super::node::{ListType, SchemaNode};
use super::schema_reader::{ErrorStage, NestedExceptions, SchemaPosition, SchemaReader, present};

/// The keywords that no schema may use.
const UNSUPPORTED: [&str; 6] = [
    "$ref",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
];

/// The keywords that a nested schema may not use, with the error text.
const NESTED_FORBIDDEN: [(&str, &str); 11] = [
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("title", "must be empty to be structural"),
    (
        "x-kubernetes-embedded-resource",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-int-or-string",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-list-map-keys",
        "must be empty to be structural",
    ),
    (
        "x-kubernetes-list-type",
        "must be undefined to be structural",
    ),
    (
        "x-kubernetes-map-type",
        "must be undefined to be structural",
    ),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

impl SchemaReader {
    /// Checks one schema; those below have been checked.
    pub(super) fn check_structure(
        &mut self,
        schema: &Map<String, Value>,
        node: &SchemaNode,
        place: SchemaPosition,
    ) {
        check_unsupported(self, schema);
        self.in_stage(ErrorStage::Structure, |reader| match place {
            SchemaPosition::Nested(privilege) => check_nested(reader, schema, privilege),
            _ => check_spine(reader, schema, node, place),
        });
        check_list_type(self, schema, node);
    }
}

fn check_unsupported(reader: &mut SchemaReader, schema: &Map<String, Value>) {
    for name in UNSUPPORTED {
        if present(schema, name).is_some() {
            reader.forbid(name, &format!("{name} is not supported"));
            reader.unreadable = true;
        }
    }
    if schema
        .get("$schema")
        .is_some_and(|it| !it.is_null() && it != "")
    {
        reader.has_dialect = true;
        reader.unreadable = true;
    }
    reader.unsupported(schema);
    if schema.get("uniqueItems") == Some(&json!(true)) {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        reader.forbid("uniqueItems", why);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        reader.under("x-kubernetes-preserve-unknown-fields", |reader| {
            reader.invalid(&json!(false), "must be true or undefined");
        });
        reader.unreadable = true;
    }
}

fn check_nested(
    reader: &mut SchemaReader,
    schema: &Map<String, Value>,
    privilege: NestedExceptions,
) {
    let says = |name: &str| match schema.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        // The types of lists and maps are pointers in Go.
        Some(Value::String(text)) => !text.is_empty() || name.ends_with("-type"),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    };
    if says("type") && privilege != NestedExceptions::Typed {
        reader.forbid("type", "must be empty to be structural");
    }
    for (name, why) in NESTED_FORBIDDEN {
        if says(name) {
            reader.forbid(name, why);
        }
    }
    if says("x-kubernetes-preserve-unknown-fields") {
        let why = "must be false to be structural";
        reader.forbid("x-kubernetes-preserve-unknown-fields", why);
    }
    if schema
        .get("properties")
        .and_then(|all| all.get("metadata"))
        .is_some()
    {
        reader.forbid(
            "properties[metadata]",
            "must not be specified in a nested context",
        );
    }
}

fn check_spine(
    reader: &mut SchemaReader,
    schema: &Map<String, Value>,
    node: &SchemaNode,
    place: SchemaPosition,
) {
    if node.kind == Some(JsonType::Array) && node.items.is_none() {
        reader.require("items", "must be specified");
    }
    check_type(reader, schema, node, place);
    check_extensions(reader, node);
    check_additional(reader, node, place);
    if place == SchemaPosition::Root || node.embedded {
        check_type_meta(reader, schema);
    }
    if place == SchemaPosition::Root {
        check_root_metadata(reader, schema);
    }
}

fn check_type(
    reader: &mut SchemaReader,
    schema: &Map<String, Value>,
    node: &SchemaNode,
    place: SchemaPosition,
) {
    let said = type_of(Some(schema));
    let wrong = |reader: &mut SchemaReader, why: &str| match said {
        "" => reader.require("type", why),
        said => reader.under("type", |reader| reader.invalid(&json!(said), why)),
    };
    let is_object = node.kind == Some(JsonType::Object);
    if node.embedded && !is_object {
        wrong(
            reader,
            "must be object if x-kubernetes-embedded-resource is true",
        );
    } else if said.is_empty() && !node.int_or_string && !node.preserve_unknown {
        let why = match place {
            SchemaPosition::Root => "must not be empty at the root",
            SchemaPosition::Item => "must not be empty for specified array items",
            _ => "must not be empty for specified object fields",
        };
        reader.require("type", why);
    }
    if place == SchemaPosition::Root && !said.is_empty() && !is_object {
        wrong(reader, "must be object at the root");
    }
}

/// Returns the type of a schema as it was written, known or not; empty if there is none.
fn type_of(schema: Option<&Map<String, Value>>) -> &str {
    let said = schema.and_then(|schema| schema.get("type"));
    said.and_then(Value::as_str).unwrap_or_default()
}

fn check_extensions(reader: &mut SchemaReader, node: &SchemaNode) {
    let both = [
        (
            "x-kubernetes-preserve-unknown-fields",
            node.preserve_unknown,
        ),
        ("x-kubernetes-embedded-resource", node.embedded),
    ];
    for (name, set) in both {
        if node.int_or_string && set {
            reader.under(name, |reader| {
                let why = "must be false if x-kubernetes-int-or-string is true";
                reader.invalid(&json!(true), why);
            });
        }
    }
    if node.embedded && !node.preserve_unknown && node.properties.is_empty() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        reader.require("properties", why);
    }
}

fn check_additional(reader: &mut SchemaReader, node: &SchemaNode, place: SchemaPosition) {
    let Some(additional) = &node.additional else {
        return;
    };
    let name = "additionalProperties";
    if place == SchemaPosition::Root {
        reader.forbid(name, "must not be used at the root");
    }
    if node.embedded {
        reader.forbid(
            name,
            "must not be used if x-kubernetes-embedded-resource is set",
        );
    }
    if additional.schema().is_some() && !node.properties.is_empty() {
        reader.forbid(
            name,
            "additionalProperties and properties are mutual exclusive",
        );
    }
}

fn check_type_meta(reader: &mut SchemaReader, schema: &Map<String, Value>) {
    let wanted = [
        ("kind", JsonType::String),
        ("apiVersion", JsonType::String),
        ("metadata", JsonType::Object),
    ];
    for (name, kind) in wanted {
        let property = schema.get("properties").and_then(|all| all.get(name));
        let said = type_of(property.and_then(Value::as_object));
        if property.is_some() && said != kind.name() {
            reader.under(&format!("properties[{name}].type"), |reader| {
                reader.invalid(&json!(said), &format!("must be {}", kind.name()));
            });
        }
    }
}

/// Checks the schema of the object's own metadata, which may restrict names alone.
fn check_root_metadata(reader: &mut SchemaReader, schema: &Map<String, Value>) {
    let Some(Value::Object(metadata)) =
        schema.get("properties").and_then(|all| all.get("metadata"))
    else {
        return;
    };
    let names_only = |properties: &Value| {
        let mut names = properties.as_object().into_iter().flat_map(Map::keys);
        names.all(|name| name == "name" || name == "generateName")
    };
    let only = metadata.iter().all(|(name, value)| match name.as_str() {
        "type" => true,
        "properties" => names_only(value),
        _ => value.is_null(),
    });
    if !only {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        reader.forbid("properties[metadata]", why);
    }
}

fn check_list_type(reader: &mut SchemaReader, schema: &Map<String, Value>, node: &SchemaNode) {
    check_topology(
        reader,
        schema,
        node,
        "x-kubernetes-map-type",
        JsonType::Object,
        &["atomic", "granular"],
    );
    check_topology(
        reader,
        schema,
        node,
        "x-kubernetes-list-type",
        JsonType::Array,
        &["atomic", "set", "map"],
    );
    let said = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
    let keys = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Value::as_array);
    if keys.is_some_and(|keys| !keys.is_empty()) && said != Some("map") {
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        match said {
            None => reader.require("x-kubernetes-list-type", why),
            Some(said) => reader.under("x-kubernetes-list-type", |reader| {
                reader.invalid(&json!(said), why);
            }),
        }
    }
    let nullable_items = node.items.as_ref().is_some_and(|items| items.nullable);
    if nullable_items && node.list != ListType::Atomic {
        let why = format!(
            "cannot be nullable when x-kubernetes-list-type is {}",
            said.unwrap_or_default()
        );
        reader.forbid("items.nullable", &why);
    }
    if node.list == ListType::Set {
        check_set_items(reader, schema, node);
    }
    if let ListType::Map(keys) = &node.list {
        check_map_keys(reader, schema, node, keys);
    }
}

fn check_topology(
    reader: &mut SchemaReader,
    schema: &Map<String, Value>,
    node: &SchemaNode,
    name: &str,
    kind: JsonType,
    known: &[&str],
) {
    let Some(said) = present(schema, name) else {
        return;
    };
    if node.kind != Some(kind) {
        let why = format!("must be {} if {name} is specified", kind.name());
        match type_of(Some(schema)) {
            "" => reader.require("type", &why),
            other => reader.under("type", |reader| reader.invalid(&json!(other), &why)),
        }
    }
    let said = said.as_str().unwrap_or_default();
    if !known.contains(&said) {
        reader.not_supported(name, said, known);
    }
}

/// Members of a set are compared as a whole, so they have to be changed as a whole.
fn check_set_items(reader: &mut SchemaReader, schema: &Map<String, Value>, node: &SchemaNode) {
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let Some(items) = &node.items else { return };
    let said = |name: &str| {
        schema
            .get("items")
            .and_then(|items| items.get(name))
            .cloned()
    };
    if items.kind == Some(JsonType::Array) && items.list != ListType::Atomic {
        let said = said("x-kubernetes-list-type").unwrap_or_default();
        reader.under("items.x-kubernetes-list-type", |reader| {
            reader.invalid(&said, why)
        });
    }
    if items.kind == Some(JsonType::Object) && !items.atomic {
        let said = said("x-kubernetes-map-type").unwrap_or_default();
        reader.under("items.x-kubernetes-map-type", |reader| {
            reader.invalid(&said, why)
        });
    }
}

fn check_map_keys(
    reader: &mut SchemaReader,
    schema: &Map<String, Value>,
    node: &SchemaNode,
    keys: &[String],
) {
    let name = "x-kubernetes-list-map-keys";
    if keys.is_empty() {
        reader.require(name, "must not be empty if x-kubernetes-list-type is map");
    }
    let Some(items) = node.items.as_deref() else {
        return match present(schema, "items") {
            None => reader.require(
                "items",
                "must have a schema if x-kubernetes-list-type is map",
            ),
            Some(_) => reader.under("items", |reader| {
                let why = "must only have a single schema if x-kubernetes-list-type is map";
                // kube-apiserver shows its own type of what may be a schema or a list.
                reader.invalid_shown(r#"{"Schema":null,"JSONSchemas":[]}"#, why);
            }),
        };
    };
    if items.kind != Some(JsonType::Object) {
        let said = type_of(schema.get("items").and_then(Value::as_object));
        return reader.under("items.type", |reader| {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            reader.invalid(&json!(said), why);
        });
    }
    let checks = items.checks.as_deref();
    let required: BTreeSet<&String> = checks.iter().flat_map(|it| &it.required).collect();
    let all_keys = json!(keys);
    let mut seen = BTreeSet::new();
    for key in keys {
        let wrong = |reader: &mut SchemaReader, why: &str| {
            reader.under(name, |reader| reader.invalid(&all_keys, why));
        };
        match items.properties.get(key) {
            None => wrong(reader, "entries must all be names of item properties"),
            Some(property) => check_map_key(reader, required.contains(key), key, property),
        }
        if !seen.insert(key) {
            wrong(reader, "must not contain duplicate entries");
        }
    }
}

fn check_map_key(reader: &mut SchemaReader, required: bool, key: &str, property: &SchemaNode) {
    let place = format!("items.properties[{key}]");
    if let Some(JsonType::Array | JsonType::Object) = property.kind {
        reader.under(&format!("{place}.type"), |reader| {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            // kube-apiserver shows the type of the items.
            reader.invalid(&json!(JsonType::Object.name()), why);
        });
    }
    if !required && property.default.is_none() {
        let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
        reader.require(&format!("{place}.default"), why);
    }
    if property.nullable {
        let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        reader.forbid(&format!("{place}.nullable"), why);
    }
}
