//! Checks the keywords of a definition's schema, as they are written, in kube-apiserver's order.
//!
//! Follows `ValidateCustomResourceDefinitionOpenAPISchema` of apiextensions-apiserver, its expressions aside: a schema
//! is told before those within it, but for its lists, maps and rules, which come after these. That the schema is
//! structural is checked elsewhere.

use ringwatch_apimachinery::go_text::{bad_value, quoted};
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Map, Value, json};

use super::kind::JsonType;
use super::outcome::SchemaErrors;
use super::path::Path;
use super::schema_reader::{SCHEMA_LEVELS_MAX, present};

/// The members of objects and of objects inside that have rules of their own.
pub(super) const META_FIELDS: [&str; 3] = ["metadata", "kind", "apiVersion"];

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
    pub(super) types: bool,
    /// True if the items of sets must be atomic.
    pub(super) atomic_sets: bool,
    /// True if the keys of lists must always be there, and items not be null.
    pub(super) map_keys: bool,
}

impl Strictness {
    /// The rules of new definitions.
    pub const ALL: Self = Self {
        types: true,
        atomic_sets: true,
        map_keys: true,
    };
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
pub(super) fn below(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
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

pub(super) struct KeywordWalk<'w> {
    pub(super) strictness: Strictness,
    pub(super) path: Path,
    level: usize,
    found: &'w mut SchemaErrors,
}

impl<'w> KeywordWalk<'w> {
    pub(super) fn new(found: &'w mut SchemaErrors, strictness: Strictness) -> Self {
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
            // Here Go asks if there is a map, and elsewhere if there is something in it.
            let is_map = name == "dependencies" && present(schema, name).is_some();
            if is_map || says(schema, name) {
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

    pub(super) fn forbid(&mut self, name: &str, why: &str) {
        self.push(name, FieldErrorKind::Forbidden, || why.to_owned());
    }

    pub(super) fn require(&mut self, name: &str, why: &str) {
        self.push(name, FieldErrorKind::Required, || why.to_owned());
    }

    pub(super) fn invalid(&mut self, name: &str, shown: &str, why: &str) {
        self.push(name, FieldErrorKind::Invalid, || format!("{shown}: {why}"));
    }

    pub(super) fn not_supported(&mut self, name: &str, value: &str, supported: &[&str]) {
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
pub(super) fn is_known_type(kind: &str) -> bool {
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

pub(super) fn flag(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name) == Some(&json!(true))
}

pub(super) fn text<'v>(schema: &'v Map<String, Value>, name: &str) -> &'v str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn named<'v>(
    schema: &'v Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (&'v String, &'v Value)> {
    schema
        .get(name)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}
