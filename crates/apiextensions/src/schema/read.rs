//! Reads a schema as definitions have it (`openAPIV3Schema`) and refuses what is not structural.
//!
//! Structural means: everything that an object may hold is said once, outside of alternatives, with its type. Then
//! what to keep and what to fill in never depends on which alternative holds. Below `anyOf`, `oneOf`,
//! `allOf` and `not` a schema may only say more about values. The one exception is the customary way to write
//! int-or-string, which names types in an `anyOf`.

use std::collections::BTreeMap;

use ringwatch_apimachinery::go_text::bad_value;
use ringwatch_apimachinery::{FieldError, FieldErrorKind, numbers};
use serde_json::{Map, Value, json};

use super::kind::JsonType;
use super::node::{Additional, ListType, SchemaNode};
use super::outcome::SchemaErrors;
use super::path::Path;
use super::patterns::Patterns;
use super::walk::ObjectWalk;
use super::{embedded, prune, structure, validate};

/// Levels of schemas in schemas. JSON is parsed to 127 levels, of which each schema takes two; what
/// comes in another way is bounded here, and with it everything that walks along a schema.
pub(super) const SCHEMA_LEVELS_MAX: usize = 128;

/// The place of a schema in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaPosition {
    /// The schema of the whole object.
    Root,
    /// The items of a list.
    Item,
    /// The schema of a member of an object.
    Field,
    /// Below `anyOf` and the like: it only checks.
    Nested(NestedExceptions),
}

/// The exceptions for nested schemas, by which int-or-string is expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NestedExceptions {
    /// None: the schema has only value validations.
    Plain,
    /// It may name a type.
    Typed,
    /// It may have an `anyOf` that names types.
    TypedAnyOf,
}

/// Reads the schema of a whole object, which may have these patterns and more.
pub(super) fn read(schema: &Value, patterns: &mut Patterns) -> Result<SchemaNode, Vec<FieldError>> {
    let mut reader = SchemaReader {
        patterns: std::mem::take(patterns),
        ..SchemaReader::default()
    };
    let node = reader.node(schema, SchemaPosition::Root);
    *patterns = std::mem::take(&mut reader.patterns);
    let mut errors = reader.into_errors();
    if errors.is_empty() {
        Ok(node)
    } else {
        errors.sort_by(|a, b| (&a.field, &a.detail).cmp(&(&b.field, &b.detail)));
        Err(errors)
    }
}

/// The kinds of errors of a schema, of which later ones are told only if there are no earlier ones that forbid to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ErrorStage {
    /// Members that no schema may have. They are told beside all others.
    #[default]
    Members,
    /// Parts that are not structural. They are told if all members can be read at all.
    Structure,
    /// Wrong defaults. They are told of structural schemas.
    Defaults,
}

/// A walk over a schema.
#[derive(Default)]
pub(super) struct SchemaReader {
    /// The errors that were found so far, by their stage.
    found: [SchemaErrors; 3],
    /// The stage of errors that are added now.
    stage: ErrorStage,
    /// True if a schema has members without which there is no structure to look at.
    pub(super) unreadable: bool,
    /// The number of `additionalProperties` around the current schema. Defaults in these are not validated.
    additional_level: usize,
    /// The path that the walk has reached.
    pub(super) path: Path,
    /// The number of schemas around the current one.
    level: usize,
    /// The compiled patterns so far, and their bytes.
    pub(super) patterns: Patterns,
    /// The number of rules so far.
    pub(super) rules_read: usize,
    /// The bytes of the expressions of these rules.
    pub(super) rule_bytes: usize,
}

impl SchemaReader {
    /// Returns the errors that are told. Follows `validateCustomResourceDefinitionValidation`.
    fn into_errors(self) -> Vec<FieldError> {
        let [members, structure, defaults] = self.found;
        let mut told = members;
        if !self.unreadable {
            let is_structural = structure.is_valid();
            told.merge(structure);
            if is_structural {
                told.merge(defaults);
            }
        }
        match told.is_valid() {
            true => Vec::new(),
            false => told.into_errors(),
        }
    }

    /// Does something whose errors are of a stage.
    pub(super) fn in_stage<R>(
        &mut self,
        stage: ErrorStage,
        check: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let before = std::mem::replace(&mut self.stage, stage);
        let result = check(self);
        self.stage = before;
        result
    }

    fn node(&mut self, schema: &Value, place: SchemaPosition) -> SchemaNode {
        let Value::Object(schema) = schema else {
            self.invalid(schema, "must be a schema");
            return SchemaNode::default();
        };
        if self.level == SCHEMA_LEVELS_MAX {
            let why = format!("must not nest deeper than {SCHEMA_LEVELS_MAX} schemas");
            self.invalid(&json!({}), &why);
            return SchemaNode::default();
        }
        self.level += 1;
        let mut node = self.members(schema, place);
        structure::check(self, schema, &node, place);
        if !matches!(place, SchemaPosition::Nested(_)) {
            node.rules = self.rules(schema, &node);
            node.ruled = node.has_rules();
        }
        self.take_default(schema, &mut node);
        self.level -= 1;
        node
    }

    fn members(&mut self, schema: &Map<String, Value>, place: SchemaPosition) -> SchemaNode {
        let flag = |name: &str| schema.get(name).is_some_and(|value| value == true);
        let nested = matches!(place, SchemaPosition::Nested(_));
        let below = |place| {
            if nested {
                SchemaPosition::Nested(NestedExceptions::Plain)
            } else {
                place
            }
        };
        SchemaNode {
            kind: self.kind(schema),
            int_or_string: flag("x-kubernetes-int-or-string"),
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            atomic: schema.get("x-kubernetes-map-type") == Some(&json!("atomic")),
            default: None,
            properties: self.properties(schema, below(SchemaPosition::Field)),
            additional: self.additional(schema, below(SchemaPosition::Field)),
            items: self.items(schema, below(SchemaPosition::Item)),
            list: list_type(schema),
            checks: self.checks(schema, place).map(Box::new),
            rules: Vec::new(),
            ruled: false,
        }
    }

    fn kind(&mut self, schema: &Map<String, Value>) -> Option<JsonType> {
        let name = present(schema, "type")?.as_str().unwrap_or_default();
        let kind = JsonType::named(name);
        if name == "null" {
            self.forbid(
                "type",
                "type cannot be set to null, use nullable as an alternative",
            );
        } else if kind.is_none() && !name.is_empty() {
            let names: Vec<&str> = JsonType::NAMES.iter().map(|(name, _)| *name).collect();
            self.not_supported("type", name, &names);
        }
        kind
    }

    fn items(
        &mut self,
        schema: &Map<String, Value>,
        place: SchemaPosition,
    ) -> Option<Box<SchemaNode>> {
        let items = present(schema, "items")?;
        if let Value::Array(items) = items {
            if !items.is_empty() {
                self.forbid("items", "items must be a schema object and not an array");
                self.unreadable = true;
            }
            return None;
        }
        let node = self.under("items", |reader| reader.node(items, place));
        Some(Box::new(node))
    }

    fn properties(
        &mut self,
        schema: &Map<String, Value>,
        place: SchemaPosition,
    ) -> BTreeMap<String, SchemaNode> {
        let mut properties = BTreeMap::new();
        let Some(Value::Object(members)) = schema.get("properties") else {
            return properties;
        };
        for (name, property) in members {
            let node = self.under("properties", |reader| {
                let mark = reader.path.key(name);
                let node = reader.node(property, place);
                reader.path.leave(mark);
                node
            });
            properties.insert(name.clone(), node);
        }
        properties
    }

    fn additional(
        &mut self,
        schema: &Map<String, Value>,
        place: SchemaPosition,
    ) -> Option<Additional> {
        match present(schema, "additionalProperties")? {
            Value::Bool(true) => Some(Additional::Any),
            Value::Bool(false) => {
                let why = "additionalProperties cannot be set to false";
                self.forbid("additionalProperties", why);
                None
            }
            other => {
                self.additional_level += 1;
                let node = self.under("additionalProperties", |reader| reader.node(other, place));
                self.additional_level -= 1;
                Some(Additional::Schema(Box::new(node)))
            }
        }
    }

    /// Returns the schemas in a list, such as those of `anyOf`.
    pub(super) fn nested(
        &mut self,
        schema: &Map<String, Value>,
        name: &str,
        privilege: impl Fn(usize) -> NestedExceptions,
    ) -> Vec<SchemaNode> {
        let Some(Value::Array(alternatives)) = schema.get(name) else {
            return Vec::new();
        };
        let mut nodes = Vec::with_capacity(alternatives.len());
        for (index, alternative) in alternatives.iter().enumerate() {
            let place = SchemaPosition::Nested(privilege(index));
            nodes.push(self.under(name, |reader| {
                let mark = reader.path.index(index);
                let node = reader.node(alternative, place);
                reader.path.leave(mark);
                node
            }));
        }
        nodes
    }

    /// Returns the schema under `not`.
    pub(super) fn not(&mut self, schema: &Map<String, Value>) -> Option<Box<SchemaNode>> {
        let not = present(schema, "not")?;
        let place = SchemaPosition::Nested(NestedExceptions::Plain);
        Some(Box::new(
            self.under("not", |reader| reader.node(not, place)),
        ))
    }

    /// Takes the default of a schema, which must be valid under it; otherwise no object could be written. Below
    /// `additionalProperties` nothing is required of it, and what the schema does not know is left out. Follows
    /// `ValidateDefaults` and `PruneDefaults`.
    fn take_default(&mut self, schema: &Map<String, Value>, node: &mut SchemaNode) {
        let Some(mut default) = present(schema, "default").cloned() else {
            return;
        };
        numbers::normalize(&mut default);
        if self.additional_level > 0 {
            prune::prune_part(node, &mut default);
        } else {
            let check = |reader: &mut Self| reader.check_default(node, &default);
            self.in_stage(ErrorStage::Defaults, |reader| {
                reader.under("default", check)
            });
        }
        node.default = Some(default);
    }

    fn check_default(&mut self, node: &SchemaNode, default: &Value) {
        if !prune::knows_all(node, default) {
            self.invalid(default, "must not have unknown fields");
        }
        let mut embedded = SchemaErrors::default();
        embedded::validate(node, default, &mut self.path, &mut embedded);
        if !embedded.is_valid() {
            return self.add(embedded);
        }
        let mut path = Path::below(self.path.field());
        let mut walk = ObjectWalk::new(&mut path);
        let found = validate::validate(node, default, None, &mut walk);
        let found = walk.end(found);
        self.add(found);
    }

    fn add(&mut self, found: SchemaErrors) {
        self.found[self.stage as usize].merge(found);
    }

    /// Does something below a member.
    pub(super) fn under<R>(&mut self, name: &str, walk: impl FnOnce(&mut Self) -> R) -> R {
        let mark = self.path.member(name);
        let result = walk(self);
        self.path.leave(mark);
        result
    }

    /// Adds an error about the value at the current path.
    pub(super) fn invalid(&mut self, value: &Value, why: &str) {
        self.invalid_shown(&bad_value(value), why);
    }

    /// Adds an error about the value at the current path, which is shown in this form.
    pub(super) fn invalid_shown(&mut self, shown: &str, why: &str) {
        let (path, found) = (&self.path, &mut self.found[self.stage as usize]);
        found.push(path, || {
            let detail = format!("{shown}: {why}");
            FieldError::new(FieldErrorKind::Invalid, path.field(), detail)
        });
    }

    /// Adds an error if a member is set.
    pub(super) fn forbid(&mut self, name: &str, why: &str) {
        self.push(FieldErrorKind::Forbidden, name, why.to_owned());
    }

    /// Adds an error if a member is not set.
    pub(super) fn require(&mut self, name: &str, why: &str) {
        self.push(FieldErrorKind::Required, name, why.to_owned());
    }

    /// Adds an error about a member whose value is not among the supported ones.
    pub(super) fn not_supported(&mut self, name: &str, value: &str, supported: &[&str]) {
        let quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = format!("{value:?}: supported values: {}", quoted.join(", "));
        self.push(FieldErrorKind::NotSupported, name, detail);
    }

    fn push(&mut self, kind: FieldErrorKind, name: &str, detail: String) {
        let mark = self.path.member(name);
        let (path, found) = (&self.path, &mut self.found[self.stage as usize]);
        found.push(path, || FieldError::new(kind, path.field(), detail));
        self.path.leave(mark);
    }
}

/// Returns a member that says something: null says nothing.
pub(super) fn present<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    schema.get(name).filter(|value| !value.is_null())
}

fn list_type(schema: &Map<String, Value>) -> ListType {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(strings(schema, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

/// Returns the strings in a list.
pub(super) fn strings(schema: &Map<String, Value>, name: &str) -> Vec<String> {
    let list = schema.get(name).and_then(Value::as_array);
    let strings = list.into_iter().flatten().filter_map(Value::as_str);
    strings.map(str::to_owned).collect()
}
