//! Checks the keywords that say how lists and maps are merged.

use std::collections::BTreeSet;

use ringwatch_apimachinery::go_text::{self, quoted};
use serde_json::{Map, Value, json};

use super::keyword_checks::{KeywordWalk, flag, says, text};
use super::schema_reader::{present, strings};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";

impl KeywordWalk<'_> {
    /// Checks how lists and maps are merged.
    pub(super) fn topology(&mut self, schema: &Map<String, Value>) {
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
            let why = "must be true or undefined";
            self.invalid("x-kubernetes-preserve-unknown-fields", "false", why);
        }
        self.merges_as(schema, MAP_TYPE, "object");
        self.known_merge(schema, MAP_TYPE, &["atomic", "granular"]);
        if self.merges_as(schema, LIST_TYPE, "array") && self.strictness.atomic_sets {
            self.set_items(schema);
        }
        self.known_merge(schema, LIST_TYPE, &["atomic", "set", "map"]);
        let list_type = schema.get(LIST_TYPE).and_then(Value::as_str);
        if says(schema, MAP_KEYS) && list_type != Some("map") {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            match list_type {
                None => self.require(LIST_TYPE, why),
                Some(said) => self.invalid(LIST_TYPE, &quoted(said), why),
            }
        }
        if list_type == Some("map") {
            self.map_items(schema);
        }
        if self.strictness.map_keys {
            self.keys_are_there(schema);
        }
    }

    /// Adds an error if a schema says how it is merged and is of another type. Returns true if it is of that type.
    fn merges_as(&mut self, schema: &Map<String, Value>, name: &str, wanted: &str) -> bool {
        let kind = text(schema, "type");
        if kind == wanted || present(schema, name).is_none() {
            return true;
        }
        let why = format!("must be {wanted} if {name} is specified");
        match kind {
            "" => self.require("type", &why),
            other => self.invalid("type", &quoted(other), &why),
        }
        false
    }

    fn known_merge(&mut self, schema: &Map<String, Value>, name: &str, known: &[&str]) {
        let said = present(schema, name).and_then(Value::as_str);
        if let Some(said) = said.filter(|said| !known.contains(said)) {
            self.not_supported(name, said, known);
        }
    }

    /// Checks that the members of a set, which are compared as a whole, are changed as a whole.
    pub(super) fn set_items(&mut self, schema: &Map<String, Value>) {
        let Some(items) = single_items(schema).filter(|_| text(schema, LIST_TYPE) == "set") else {
            return;
        };
        let list_type = items.get(LIST_TYPE).unwrap_or(&Value::Null);
        let is_granular = match text(items, "type") {
            "array" => !list_type.is_null() && *list_type != json!("atomic"),
            "object" => text(items, MAP_TYPE) != "atomic",
            _ => false,
        };
        if is_granular {
            let name = match text(items, "type") {
                "array" => LIST_TYPE,
                _ => MAP_TYPE,
            };
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            // kube-apiserver shows the type of the list for that of the map too.
            self.invalid(&format!("items.{name}"), &go_text::json(list_type), why);
        }
    }

    /// Checks the items of a list whose members are told apart by keys.
    fn map_items(&mut self, schema: &Map<String, Value>) {
        let keys = strings(schema, MAP_KEYS);
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            self.require(MAP_KEYS, why);
        }
        let Some(items) = single_items(schema) else {
            return match present(schema, "items") {
                None => {
                    let why = "must have a schema if x-kubernetes-list-type is map";
                    self.require("items", why);
                }
                Some(_) => {
                    // kube-apiserver shows its own type of what may be a schema or a list.
                    let shown = r#"{"Schema":null,"JSONSchemas":[]}"#;
                    let why = "must only have a single schema if x-kubernetes-list-type is map";
                    self.invalid("items", shown, why);
                }
            };
        };
        let kind = text(items, "type");
        if kind != "object" {
            let why = "must be object if parent array's x-kubernetes-list-type is map";
            return self.invalid("items.type", &quoted(kind), why);
        }
        let shown = json!(keys).to_string();
        let mut seen = BTreeSet::new();
        for key in &keys {
            match items.get("properties").and_then(|all| all.get(key)) {
                Some(property) => {
                    let kind = property.get("type").and_then(Value::as_str);
                    if matches!(kind, Some("array" | "object")) {
                        let why =
                            "must be a scalar type if parent array's x-kubernetes-list-type is map";
                        // kube-apiserver shows the type of the items.
                        self.invalid(&format!("items.properties[{key}].type"), "\"object\"", why);
                    }
                }
                None => {
                    let why = "entries must all be names of item properties";
                    self.invalid(MAP_KEYS, &shown, why);
                }
            }
            if !seen.insert(key) {
                self.invalid(MAP_KEYS, &shown, "must not contain duplicate entries");
            }
        }
    }

    /// Checks that items of sets and maps are not null, and that the keys of maps are always there. Follows
    /// `validateMapListKeysMapSet`.
    pub(super) fn keys_are_there(&mut self, schema: &Map<String, Value>) {
        let list_type = text(schema, LIST_TYPE);
        let Some(items) = single_items(schema).filter(|_| ["set", "map"].contains(&list_type))
        else {
            return;
        };
        if flag(items, "nullable") {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid("items.nullable", &why);
        }
        if list_type != "map" {
            return;
        }
        let required = strings(items, "required");
        let required: BTreeSet<&String> = required.iter().collect();
        for key in &strings(schema, MAP_KEYS) {
            let property = items
                .get("properties")
                .and_then(|all| all.get(key)?.as_object());
            let Some(property) = property else { continue };
            if !required.contains(key) && present(property, "default").is_none() {
                let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.require(&format!("items.properties[{key}].default"), why);
            }
            if flag(property, "nullable") {
                let why =
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(&format!("items.properties[{key}].nullable"), why);
            }
        }
    }
}

/// Returns the one schema of all items.
fn single_items(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("items")?.as_object()
}
