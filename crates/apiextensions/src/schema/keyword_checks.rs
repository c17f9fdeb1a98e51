//! Checks the keywords of a definition's schema, as they are written, in kube-apiserver's order.
//!
//! Follows `ValidateCustomResourceDefinitionOpenAPISchema` of apiextensions-apiserver, its expressions aside: a schema
//! is told before those within it, but for its lists, maps and rules, which come after these. That the schema is
//! structural is checked elsewhere.

use std::collections::BTreeSet;

use ringwatch_apimachinery::go_text::{self, bad_value, quoted};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Map, Value, json};

use super::kind::JsonType;
use super::outcome::SchemaErrors;
use super::path::Path;
use super::read::SCHEMA_LEVELS_MAX;
use super::rules::{REASONS, RULES_MAX};
use super::schema_reader::{present, strings};

/// The members of objects and of objects inside that have rules of their own.
const META_FIELDS: [&str; 3] = ["metadata", "kind", "apiVersion"];

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const RULES: &str = "x-kubernetes-validations";

/// The keywords that are not supported, in the order in which they are told.
pub(super) const UNSUPPORTED: [&str; 6] = [
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
];

/// The rules that a schema must follow which an older one need not have followed.
#[derive(Clone, Copy, Debug)]
pub struct Strictness {
    /// True if types must be known.
    types: bool,
    /// True if the items of sets must be atomic.
    atomic_sets: bool,
    /// True if the keys of lists must always be there, and items not be null.
    map_keys: bool,
}

impl Strictness {
    /// The rules of new definitions.
    pub const ALL: Self = Self {
        types: true,
        atomic_sets: true,
        map_keys: true,
    };

    /// Returns the rules that the schemas of an older definition followed.
    pub fn of<'v>(schemas: impl Iterator<Item = &'v Value>) -> Self {
        let mut followed = Self::ALL;
        for schema in schemas {
            followed.look_at(schema, 0);
        }
        followed
    }

    fn look_at(&mut self, schema: &Value, level: usize) {
        let Some(members) = schema.as_object().filter(|_| level < SCHEMA_LEVELS_MAX) else {
            return;
        };
        self.types &= is_known_type(text(members, "type"));
        let mut found = SchemaErrors::default();
        KeywordWalk::new(&mut found, Self::ALL).set_items(members);
        self.atomic_sets &= found.is_valid();
        let mut found = SchemaErrors::default();
        KeywordWalk::new(&mut found, Self::ALL).keys_are_there(members);
        self.map_keys &= found.is_valid();
        for inner in below(members) {
            self.look_at(inner, level + 1);
        }
    }
}

/// Returns true if a schema, or one in it, has a default. Follows `schemaHasDefaults`.
#[must_use]
pub fn has_defaults(schema: &Value) -> bool {
    fn has(schema: &Value, level: usize) -> bool {
        let members = schema.as_object().filter(|_| level < SCHEMA_LEVELS_MAX);
        members.is_some_and(|members| {
            present(members, "default").is_some() || below(members).any(|it| has(it, level + 1))
        })
    }
    has(schema, 0)
}

/// Returns all schemas directly within a schema.
fn below(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let single = ["items", "additionalProperties", "additionalItems", "not"];
    let lists = ["items", "allOf", "anyOf", "oneOf"];
    let named = [
        "properties",
        "patternProperties",
        "definitions",
        "dependencies",
    ];
    let single = single.into_iter().filter_map(|name| members.get(name));
    let lists = lists
        .into_iter()
        .filter_map(|name| members.get(name)?.as_array());
    let named = named
        .into_iter()
        .filter_map(|name| members.get(name)?.as_object());
    single
        .chain(lists.flatten())
        .chain(named.flat_map(Map::values))
}

/// Adds the errors in the keywords of a whole object's schema.
pub(super) fn check(schema: &Value, strictness: Strictness, found: &mut SchemaErrors) {
    let place = KeywordPlace {
        is_root: true,
        ..KeywordPlace::default()
    };
    KeywordWalk::new(found, strictness).schema(schema, place);
}

/// The place of a schema in another one.
#[derive(Clone, Copy, Default)]
struct KeywordPlace {
    /// True for the schema of the whole object.
    is_root: bool,
    /// True for what describes metadata, kind or version of an object.
    is_in_meta: bool,
    /// The reason why there may be no defaults.
    forbids_defaults: Option<&'static str>,
}

struct KeywordWalk<'w> {
    strictness: Strictness,
    path: Path,
    level: usize,
    found: &'w mut SchemaErrors,
}

impl<'w> KeywordWalk<'w> {
    fn new(found: &'w mut SchemaErrors, strictness: Strictness) -> Self {
        Self {
            strictness,
            path: Path::default(),
            level: 0,
            found,
        }
    }

    fn schema(&mut self, schema: &Value, place: KeywordPlace) {
        let Some(schema) = schema
            .as_object()
            .filter(|_| self.level < SCHEMA_LEVELS_MAX)
        else {
            return;
        };
        self.level += 1;
        self.standard(schema, place);
        self.inner(schema, place);
        self.topology(schema);
        self.rules(schema);
        self.level -= 1;
    }

    /// Checks what no schema may have. Follows `specStandardValidatorV3.validate`.
    fn standard(&mut self, schema: &Map<String, Value>, place: KeywordPlace) {
        let kind = text(schema, "type");
        if self.strictness.types && !is_known_type(kind) {
            let names: Vec<&str> = JsonType::NAMES.iter().map(|(name, _)| *name).collect();
            self.not_supported("type", kind, &names);
        }
        if let Some(why) = place.forbids_defaults
            && present(schema, "default").is_some()
        {
            self.forbid("default", &format!("must not be set {why}"));
        }
        for name in UNSUPPORTED {
            if says(schema, name) {
                self.forbid(name, &format!("{name} is not supported"));
            }
        }
        if kind == "null" {
            let why = "type cannot be set to null, use nullable as an alternative";
            self.forbid("type", why);
        }
        if schema
            .get("items")
            .and_then(Value::as_array)
            .is_some_and(|it| !it.is_empty())
        {
            self.forbid("items", "items must be a schema object and not an array");
        }
        if place.is_in_meta && flag(schema, "x-kubernetes-embedded-resource") {
            let why = "must not be used inside of resource meta";
            self.forbid("x-kubernetes-embedded-resource", why);
        }
        if flag(schema, "uniqueItems") {
            let why =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid("uniqueItems", why);
        }
    }

    /// Checks the schemas within a schema.
    fn inner(&mut self, schema: &Map<String, Value>, place: KeywordPlace) {
        let plain = KeywordPlace {
            is_root: false,
            ..place
        };
        if let Some(additional) = present(schema, "additionalProperties") {
            if says(schema, "properties") && *additional != json!(true) {
                let why = "additionalProperties and properties are mutual exclusive";
                self.forbid("additionalProperties", why);
            }
            let mut place = plain;
            if place.is_in_meta {
                let why = "inside additionalProperties applying to object metadata";
                place.forbids_defaults = Some(why);
            }
            self.under("additionalProperties", additional, place);
        }
        let has_meta = place.is_root || flag(schema, "x-kubernetes-embedded-resource");
        for (name, property) in named(schema, "properties") {
            let mut inner = plain;
            if has_meta && META_FIELDS.contains(&name.as_str()) {
                inner.is_in_meta = true;
                if place.is_root {
                    inner.forbids_defaults = Some(in_top_level(name));
                }
            }
            self.under_key("properties", name, property, inner);
        }
        if let Some(not) = present(schema, "not") {
            self.under("not", not, plain);
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            self.under_items(name, schema.get(name), plain);
        }
        for (name, definition) in named(schema, "definitions") {
            self.under_key("definitions", name, definition, plain);
        }
        match present(schema, "items") {
            Some(Value::Array(_)) => self.under_items("items", schema.get("items"), plain),
            Some(items) => self.under("items", items, plain),
            None => {}
        }
        for (name, dependency) in named(schema, "dependencies") {
            self.under_key("dependencies", name, dependency, plain);
        }
    }

    /// Checks how lists and maps are merged.
    fn topology(&mut self, schema: &Map<String, Value>) {
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
    fn set_items(&mut self, schema: &Map<String, Value>) {
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
    fn keys_are_there(&mut self, schema: &Map<String, Value>) {
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

    /// Checks what rules say, their expressions aside.
    fn rules(&mut self, schema: &Map<String, Value>) {
        let rules = schema.get(RULES).and_then(Value::as_array);
        let rules = rules.into_iter().flatten().enumerate().take(RULES_MAX);
        for (index, rule) in rules {
            let Some(rule) = rule.as_object() else {
                continue;
            };
            let mark = self.path.member(RULES);
            let inner = self.path.index(index);
            self.rule(rule, schema);
            self.path.leave(inner);
            self.path.leave(mark);
        }
    }

    fn rule(&mut self, rule: &Map<String, Value>, schema: &Map<String, Value>) {
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
        let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if source.is_empty() {
            self.require("rule", "rule is not specified");
        } else if is_blank(message) {
            self.invalid(
                "message",
                &quoted(message),
                "must be non-empty if specified",
            );
        } else if has_breaks(message.trim()) {
            self.invalid("message", &quoted(message), "must not contain line breaks");
        } else if has_breaks(source) && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            self.require("message", why);
        }
        if is_blank(text(rule, "messageExpression")) {
            let why = "messageExpression must be non-empty if specified";
            self.require("messageExpression", why);
        }
        let reason = rule.get("reason").and_then(Value::as_str);
        let known = REASONS.map(|(name, _)| name);
        if let Some(reason) = reason.filter(|reason| !known.contains(reason)) {
            self.not_supported("reason", reason, &known);
        }
        let field = text(rule, "fieldPath");
        if is_blank(field) {
            self.invalid(
                "fieldPath",
                &quoted(field),
                "must be non-empty if specified",
            );
        }
        if has_breaks(field) {
            self.invalid("fieldPath", &quoted(field), "must not contain line breaks");
        }
        if !leads_somewhere(schema, field) && is_readable(schema, 0) {
            self.invalid("fieldPath", &quoted(field), "must be a valid path");
        }
    }
}

impl KeywordWalk<'_> {
    fn under(&mut self, name: &str, schema: &Value, place: KeywordPlace) {
        let mark = self.path.member(name);
        self.schema(schema, place);
        self.path.leave(mark);
    }

    fn under_key(&mut self, name: &str, key: &str, schema: &Value, place: KeywordPlace) {
        let mark = self.path.member(name);
        let inner = self.path.key(key);
        self.schema(schema, place);
        self.path.leave(inner);
        self.path.leave(mark);
    }

    fn under_items(&mut self, name: &str, schemas: Option<&Value>, place: KeywordPlace) {
        let schemas = schemas.and_then(Value::as_array).into_iter().flatten();
        for (index, schema) in schemas.enumerate() {
            let mark = self.path.member(name);
            let inner = self.path.index(index);
            self.schema(schema, place);
            self.path.leave(inner);
            self.path.leave(mark);
        }
    }

    fn push(&mut self, name: &str, kind: FieldErrorKind, detail: impl FnOnce() -> String) {
        let mark = self.path.member(name);
        let path = &self.path;
        self.found
            .push(path, || FieldError::new(kind, path.field(), detail()));
        self.path.leave(mark);
    }

    fn forbid(&mut self, name: &str, why: &str) {
        self.push(name, FieldErrorKind::Forbidden, || why.to_owned());
    }

    fn require(&mut self, name: &str, why: &str) {
        self.push(name, FieldErrorKind::Required, || why.to_owned());
    }

    fn invalid(&mut self, name: &str, shown: &str, why: &str) {
        self.push(name, FieldErrorKind::Invalid, || format!("{shown}: {why}"));
    }

    fn not_supported(&mut self, name: &str, value: &str, supported: &[&str]) {
        self.push(name, FieldErrorKind::NotSupported, || {
            let all: Vec<String> = supported.iter().map(|it| quoted(it)).collect();
            let value = bad_value(&value.into());
            format!("{value}: supported values: {}", all.join(", "))
        });
    }
}

/// Returns the words about a default of a member that every object has.
fn in_top_level(name: &str) -> &'static str {
    match name {
        "metadata" => "in top-level metadata",
        "kind" => "in top-level kind",
        _ => "in top-level apiVersion",
    }
}

/// Returns true if a type is known, or none.
fn is_known_type(kind: &str) -> bool {
    kind.is_empty() || JsonType::named(kind).is_some()
}

/// Returns true if a keyword that is not supported is there. An empty one is none, unless it is a pointer in Go.
pub(super) fn says(schema: &Map<String, Value>, name: &str) -> bool {
    let is_pointer = ["additionalItems", "$ref", "dependencies"].contains(&name);
    match schema.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => is_pointer || !text.is_empty(),
        Some(Value::Object(members)) => name == "additionalItems" || !members.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    }
}

fn flag(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name) == Some(&json!(true))
}

fn text<'v>(schema: &'v Map<String, Value>, name: &str) -> &'v str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn named<'v>(
    schema: &'v Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (&'v String, &'v Value)> {
    schema
        .get(name)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

/// Returns the one schema of all items.
fn single_items(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    schema.get("items")?.as_object()
}

/// Returns true if a schema, and those in it, have only keywords that a structure can have.
fn is_readable(schema: &Map<String, Value>, level: usize) -> bool {
    let unsupported = UNSUPPORTED.iter().chain(&["$schema"]);
    !unsupported.into_iter().any(|name| says(schema, name))
        && schema.get("x-kubernetes-preserve-unknown-fields") != Some(&json!(false))
        && below(schema)
            .filter_map(Value::as_object)
            .all(|inner| level == SCHEMA_LEVELS_MAX || is_readable(inner, level + 1))
}

/// Returns true if a path leads to a member that a schema has. Follows `ValidFieldPath`.
fn leads_somewhere(schema: &Map<String, Value>, path: &str) -> bool {
    let mut schema = Some(schema);
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            let Some(split) = after.split_once("']") else {
                return false;
            };
            (name, rest) = split;
        } else {
            let Some(after) = rest.strip_prefix('.').filter(|it| !it.is_empty()) else {
                return false;
            };
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            (name, rest) = after.split_at(end);
        }
        let Some(here) = schema else { return false };
        let inner = match here.get("properties") {
            Some(all) => all.get(name),
            None => here.get("additionalProperties").filter(|it| !it.is_null()),
        };
        let Some(inner) = inner else { return false };
        schema = inner.as_object();
    }
    true
}
