//! The rules of structural schemas, in kube-apiserver's words.

use serde_json::{Map, Value, json};

use super::keyword_checks::{UNSUPPORTED, says};
use super::kind::JsonType;
use super::node::SchemaNode;
use super::schema_reader::{ErrorStage, NestedExceptions, SchemaPosition, SchemaReader};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

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
        note_unreadable(self, schema);
        self.in_stage(ErrorStage::Structure, |reader| match place {
            SchemaPosition::Nested(privilege) => check_nested(reader, schema, privilege),
            _ => check_spine(reader, schema, node, place),
        });
    }
}

/// Notes the members without which there is no structure to look at. Follows `NewStructural`.
fn note_unreadable(reader: &mut SchemaReader, schema: &Map<String, Value>) {
    let has_dialect = says(schema, "$schema");
    reader.has_dialect |= has_dialect;
    reader.unreadable |= has_dialect
        || UNSUPPORTED.iter().any(|name| says(schema, name))
        || schema.get(PRESERVE) == Some(&json!(false));
}

fn check_nested(
    reader: &mut SchemaReader,
    schema: &Map<String, Value>,
    privilege: NestedExceptions,
) {
    let says = |name: &str| match schema.get(name) {
        None | Some(Value::Null) => false,
        Some(_) if name == "default" => true,
        Some(Value::Bool(false)) => false,
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
    if node.additional.is_none() {
        return;
    }
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
        // That there may be no default is told of the keyword.
        "type" | "default" => true,
        "properties" => names_only(value),
        _ => value.is_null(),
    });
    if !only {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        reader.forbid("properties[metadata]", why);
    }
}
