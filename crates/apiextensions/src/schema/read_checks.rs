//! Reads what a schema says about values: ranges, sizes, patterns, alternatives.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::formats::Format;
use super::kind::JsonType;
use super::node::{AllowedValues, Checks, NumberBound, SchemaNode, Sizes};
use super::schema_reader::{
    ErrorStage, NestedExceptions, SchemaPosition, SchemaReader, present, strings,
};

/// The keywords of conditions. Most nodes have none of them.
const CHECKS: [&str; 17] = [
    "allOf",
    "anyOf",
    "enum",
    "format",
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
    "oneOf",
    "pattern",
    "required",
];

impl SchemaReader {
    /// Returns the checks of a schema, if it has any.
    pub(super) fn checks(
        &mut self,
        schema: &Map<String, Value>,
        place: SchemaPosition,
    ) -> Option<Checks> {
        let unknown_type = unknown_type(schema);
        if unknown_type.is_none() && !CHECKS.iter().any(|name| present(schema, name).is_some()) {
            return None;
        }
        let named = schema.get("format").and_then(Value::as_str);
        let named = named.filter(|name| !name.is_empty());
        let kind = schema.get("type").and_then(Value::as_str);
        let kind = kind.and_then(JsonType::named);
        let format = named.and_then(|name| Format::named(name, kind));
        let unknown_format = named.filter(|_| format.is_none());
        let pattern = schema.get("pattern").and_then(Value::as_str);
        Some(Checks {
            required: strings(schema, "required"),
            allowed: AllowedValues::new(list(schema, "enum")),
            maximum: self.bound(schema, "maximum", "exclusiveMaximum"),
            minimum: self.bound(schema, "minimum", "exclusiveMinimum"),
            multiple_of: self.number(schema, "multipleOf"),
            sizes: self.sizes(schema),
            pattern: pattern
                .filter(|text| !text.is_empty())
                .and_then(|text| self.pattern(text)),
            format,
            unknown_format: unknown_format.map(Into::into),
            unknown_type,
            any_of: self.any_of(schema, place),
            all_of: self.all_of(schema, place),
            one_of: self.nested(schema, "oneOf", |_| NestedExceptions::Plain),
            not: self.not(schema),
        })
    }

    fn any_of(&mut self, schema: &Map<String, Value>, place: SchemaPosition) -> Vec<SchemaNode> {
        let may = !matches!(
            place,
            SchemaPosition::Nested(NestedExceptions::Plain | NestedExceptions::Typed)
        );
        let typed = may && is_int_or_string(schema);
        let privilege = if typed {
            NestedExceptions::Typed
        } else {
            NestedExceptions::Plain
        };
        self.nested(schema, "anyOf", |_| privilege)
    }

    fn all_of(&mut self, schema: &Map<String, Value>, place: SchemaPosition) -> Vec<SchemaNode> {
        let first = schema.get("allOf").and_then(|all| all.get(0)?.as_object());
        let holds =
            !matches!(place, SchemaPosition::Nested(_)) && first.is_some_and(is_int_or_string);
        self.nested(schema, "allOf", |index| match (holds, index) {
            (true, 0) => NestedExceptions::TypedAnyOf,
            _ => NestedExceptions::Plain,
        })
    }

    fn bound(
        &mut self,
        schema: &Map<String, Value>,
        name: &str,
        exclusive: &str,
    ) -> Option<NumberBound> {
        let at = self.number(schema, name)?;
        let exclusive = schema.get(exclusive).is_some_and(|value| value == true);
        Some(NumberBound { at, exclusive })
    }

    fn sizes(&mut self, schema: &Map<String, Value>) -> Sizes {
        Sizes {
            length_max: self.count(schema, "maxLength"),
            length_min: self.count(schema, "minLength"),
            items_max: self.count(schema, "maxItems"),
            items_min: self.count(schema, "minItems"),
            properties_max: self.count(schema, "maxProperties"),
            properties_min: self.count(schema, "minProperties"),
        }
    }

    fn number(&mut self, schema: &Map<String, Value>, name: &str) -> Option<f64> {
        let value = present(schema, name)?;
        if value.as_f64().is_none() {
            self.under(name, |reader| reader.invalid(value, "must be a number"));
        }
        value.as_f64()
    }

    fn count(&mut self, schema: &Map<String, Value>, name: &str) -> Option<i64> {
        let value = present(schema, name)?;
        if value.as_i64().is_none() {
            self.under(name, |reader| reader.invalid(value, "must be an integer"));
        }
        value.as_i64()
    }

    fn pattern(&mut self, text: &str) -> Option<Arc<str>> {
        let checked = self.patterns.check(text);
        let refuse = |why: String| {
            let refuse = |reader: &mut Self| reader.invalid(&Value::from(text), &why);
            self.in_stage(ErrorStage::Structure, |reader| {
                reader.under("pattern", refuse)
            });
        };
        checked.map_err(refuse).ok()
    }
}

/// Returns the name of a type that there is not.
fn unknown_type(schema: &Map<String, Value>) -> Option<Box<str>> {
    let name = schema.get("type").and_then(Value::as_str)?;
    let is_unknown = !name.is_empty() && JsonType::named(name).is_none();
    is_unknown.then(|| name.into())
}

/// Returns true if a schema is one of the customary forms of "an integer or a string".
fn is_int_or_string(schema: &Map<String, Value>) -> bool {
    schema.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

fn list(schema: &Map<String, Value>, name: &str) -> Vec<Value> {
    let list = schema.get(name).and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}
