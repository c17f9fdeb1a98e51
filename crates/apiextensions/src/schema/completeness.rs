//! Checks that what alternatives say of members and items is also said outside of them, so that each of these has a
//! type. Follows `validateStructuralCompleteness`, which looks at the alternatives of the root alone.

use ringwatch_apimachinery::{FieldError, FieldErrorKind};

use super::node::{Checks, SchemaNode};
use super::path::Path;
use super::schema_reader::SchemaReader;

/// The beginning of the detail of an error about what is missing; the place where it is said follows, from the schema
/// on.
pub const DEFINED_IN: &str = "because it is defined in ";

impl SchemaReader {
    /// Adds an error for each part of the alternatives of the root that the root itself does not have.
    pub(super) fn check_completeness(&mut self, root: &SchemaNode) {
        let mut walk = CompletenessWalk {
            reader: self,
            place: Path::default(),
            said_in: Path::default(),
        };
        walk.alternatives(root.checks.as_deref(), root);
    }
}

/// A walk along alternatives and, beside it, along the structure.
struct CompletenessWalk<'r> {
    reader: &'r mut SchemaReader,
    /// The path in the structure.
    place: Path,
    /// The path in the alternatives.
    said_in: Path,
}

impl CompletenessWalk<'_> {
    fn alternatives(&mut self, checks: Option<&Checks>, structure: &SchemaNode) {
        let Some(checks) = checks else { return };
        if let Some(not) = &checks.not {
            let mark = self.said_in.member("not");
            self.nested(not, Some(structure));
            self.said_in.leave(mark);
        }
        for (name, alternatives) in [
            ("allOf", &checks.all_of),
            ("anyOf", &checks.any_of),
            ("oneOf", &checks.one_of),
        ] {
            let mark = self.said_in.member(name);
            for (index, alternative) in alternatives.iter().enumerate() {
                let mark = self.said_in.index(index);
                self.nested(alternative, Some(structure));
                self.said_in.leave(mark);
            }
            self.said_in.leave(mark);
        }
    }

    fn nested(&mut self, node: &SchemaNode, structure: Option<&SchemaNode>) {
        let Some(structure) = structure else {
            let (place, said_in) = (&self.place, self.said_in.as_str());
            let found = &mut self.reader.found[self.reader.stage as usize];
            return found.push(place, || {
                let detail = format!("{DEFINED_IN}{said_in}");
                FieldError::new(FieldErrorKind::Required, place.field(), detail)
            });
        };
        self.alternatives(node.checks.as_deref(), structure);
        if let Some(items) = &node.items {
            let marks = (self.place.member("items"), self.said_in.member("items"));
            self.nested(items, structure.items.as_deref());
            self.place.leave(marks.0);
            self.said_in.leave(marks.1);
        }
        let marks = (
            self.place.member("properties"),
            self.said_in.member("properties"),
        );
        for (name, property) in &node.properties {
            let marks = (self.place.key(name), self.said_in.key(name));
            self.nested(property, structure.properties.get(name));
            self.place.leave(marks.0);
            self.said_in.leave(marks.1);
        }
        self.place.leave(marks.0);
        self.said_in.leave(marks.1);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::schema::StructuralSchema;

    fn errors(schema: &Value) -> Vec<String> {
        let errors = StructuralSchema::read(schema, false)
            .err()
            .unwrap_or_default();
        let lines = errors
            .iter()
            .map(|it| format!("{}: {}", it.field, it.message()));
        lines.collect()
    }

    #[test]
    fn what_no_schema_may_have_is_read_as_well() {
        let object = |name: &str, value: Value| json!({"type": "object", "not": {name: value}});
        for (schema, expected) in [
            (object("externalDocs", json!({"url": "x"})), vec![]),
            (
                object("$schema", json!("x")),
                vec![": Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"],
            ),
            (
                object("x-kubernetes-map-type", json!("")),
                vec![
                    "not.x-kubernetes-map-type: Forbidden: must be undefined to be structural",
                    "not.type: Required value: must be object if x-kubernetes-map-type is specified",
                    "not.x-kubernetes-map-type: Unsupported value: \"\": supported values: \"atomic\", \"granular\"",
                ],
            ),
            (
                object(
                    "x-kubernetes-validations",
                    json!([
                    {"rule": "a\nb", "fieldPath": "x"}, {"rule": "a", "message": " ", "messageExpression": " "}]),
                ),
                vec![
                    "not.x-kubernetes-validations: Forbidden: must be empty to be structural",
                    "not.x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks",
                    "not.x-kubernetes-validations[0].fieldPath: Invalid value: \"x\": must be a valid path",
                    "not.x-kubernetes-validations[1].message: Invalid value: \" \": must be non-empty if specified",
                    "not.x-kubernetes-validations[1].messageExpression: Required value: messageExpression must be non-empty if specified",
                ],
            ),
            (
                object(
                    "definitions",
                    json!({"k": {"x-kubernetes-list-type": "set"}}),
                ),
                vec![
                    "not.definitions: Forbidden: definitions is not supported",
                    "not.definitions[k].type: Required value: must be array if x-kubernetes-list-type is specified",
                ],
            ),
            (
                object("dependencies", json!({})),
                vec!["not.dependencies: Forbidden: dependencies is not supported"],
            ),
            (
                object("dependencies", json!({"a": ["b"], "k": {"id": "x"}})),
                vec![
                    "not.dependencies: Forbidden: dependencies is not supported",
                    "not.dependencies[k].id: Forbidden: id is not supported",
                ],
            ),
        ] {
            assert_eq!(errors(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn what_alternatives_say_more_of_is_said_outside_of_them() {
        let known =
            json!({"a": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}});
        for (alternatives, expected) in [
            (
                json!({"not": {"properties": {"a": {"minLength": 1}}}}),
                vec![],
            ),
            (
                json!({"not": {"properties": {"k": {}}}}),
                vec!["properties[k]: Required value: because it is defined in not.properties[k]"],
            ),
            (
                json!({"anyOf": [{}, {"allOf": [{"properties": {"a": {"items": {}}}}]}]}),
                vec![
                    "properties[a].items: Required value: because it is defined in anyOf[1].allOf[0].properties[a].items",
                ],
            ),
            (
                json!({"oneOf": [{"items": {}, "properties": {"l": {"items": {"maxLength": 3}}}}]}),
                vec!["items: Required value: because it is defined in oneOf[0].items"],
            ),
        ] {
            let mut schema = json!({"type": "object", "properties": known});
            for (name, said) in alternatives.as_object().into_iter().flatten() {
                schema[name] = said.clone();
            }
            assert_eq!(errors(&schema), expected, "{schema}");
        }
    }
}
