//! Reads a schema as definitions have it (`openAPIV3Schema`) and refuses what is not structural.
//!
//! Structural means: everything that an object may hold is said once, outside of alternatives, with its type. Then
//! what to keep and what to fill in never depends on which alternative holds. Below `anyOf`, `oneOf`,
//! `allOf` and `not` a schema may only say more about values. The one exception is the customary way to write
//! int-or-string, which names types in an `anyOf`.

use std::collections::BTreeMap;

use ringwatch_apimachinery::FieldError;
use serde_json::{Map, Value, json};

use super::keyword_checks::Strictness;
use super::kind::JsonType;
use super::node::{Additional, ListType, SchemaNode};
use super::outcome::SchemaErrors;
use super::path::Path;
use super::patterns::Patterns;
use super::schema_reader::{
    ErrorStage, NestedExceptions, SCHEMA_LEVELS_MAX, SchemaPosition, SchemaReader, present, strings,
};
use super::{keyword_checks, prune};

/// A schema that was refused.
pub(super) struct RefusedSchema {
    /// The errors, in kube-apiserver's order.
    pub(super) errors: Vec<FieldError>,
    /// The schema, if only its keywords are wrong. It has the rules of those parts in which nothing is.
    pub(super) node: Option<Box<SchemaNode>>,
}

/// Reads the schema of a whole object, which may have these patterns and more.
pub(super) fn read(
    schema: &Value,
    patterns: &mut Patterns,
    strictness: Strictness,
) -> Result<SchemaNode, RefusedSchema> {
    let mut reader = SchemaReader {
        patterns: std::mem::take(patterns),
        ..SchemaReader::default()
    };
    let mut node = reader.node(schema, SchemaPosition::Root);
    reader.in_stage(ErrorStage::Structure, |it| it.check_completeness(&node));
    *patterns = std::mem::take(&mut reader.patterns);
    if reader.is_structural() {
        reader.in_stage(ErrorStage::Defaults, |it| it.check_defaults(&node));
    }
    reader.in_stage(ErrorStage::Keywords, |it| {
        let mut found = SchemaErrors::default();
        keyword_checks::check(schema, strictness, &mut found);
        it.add(found);
    });
    let wrong = reader.wrong_keywords();
    let errors = reader.into_errors();
    if errors.is_empty() {
        return Ok(node);
    }
    let node = wrong.map(|wrong| {
        wrong.forget_rules(&mut node, &mut Path::default());
        Box::new(node)
    });
    Err(RefusedSchema { errors, node })
}

impl SchemaReader {
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
        self.check_structure(schema, &node, place);
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
            kind: schema
                .get("type")
                .and_then(Value::as_str)
                .and_then(JsonType::named),
            int_or_string: flag("x-kubernetes-int-or-string"),
            nullable: flag("nullable"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            has_format: schema
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| !matches!(format, "" | "byte")),
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

    fn items(
        &mut self,
        schema: &Map<String, Value>,
        place: SchemaPosition,
    ) -> Option<Box<SchemaNode>> {
        let items = present(schema, "items")?;
        if let Value::Array(items) = items {
            if !items.is_empty() {
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
            Value::Bool(false) => Some(Additional::Nothing),
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

    /// Takes the default of a schema. Below `additionalProperties` nothing is required of it, and what the schema does
    /// not know is left out. Follows `PruneDefaults`.
    fn take_default(&mut self, schema: &Map<String, Value>, node: &mut SchemaNode) {
        let Some(mut default) = present(schema, "default").cloned() else {
            return;
        };
        if self.additional_level > 0 {
            prune::prune_part(node, &mut default);
        }
        node.default = Some(default);
    }
}

fn list_type(schema: &Map<String, Value>) -> ListType {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map(strings(schema, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}
