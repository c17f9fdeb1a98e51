//! How the values of a type merge in server-side apply: what its lists and objects are, as
//! `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` say.

use ringwatch_apply::{ItemSchema, ListKeys, MergeSchema, Merging};
use serde_json::Value;

use super::StructuralSchema;
use super::node::{Kind, ListType, Node};

impl MergeSchema for StructuralSchema {
    fn merging(&self, steps: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'_>> {
        let mut node = &self.root;
        for step in steps {
            node = match step {
                Some(name) => node.member(name)?,
                None => node.items.as_deref()?,
            };
        }
        Some(match (node.kind, &node.list) {
            (Some(Kind::Array), ListType::Atomic) => Merging::Whole,
            (Some(Kind::Array), ListType::Set) => Merging::Set,
            (Some(Kind::Array), ListType::Map(names)) => Merging::Keyed(ListKeys {
                names,
                items: node.items.as_deref().map(|it| it as &dyn ItemSchema),
            }),
            _ if node.atomic => Merging::Whole,
            _ => Merging::Members {
                named: node.additional.is_none(),
            },
        })
    }
}

impl ItemSchema for Node {
    fn default_of(&self, member: &str) -> Option<&Value> {
        self.member(member)?.default.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_says_how_its_values_merge() {
        let schema = StructuralSchema::read(
            &json!({"type": "object", "properties": {
                "parts": {
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "side"],
                    "items": {"type": "object", "required": ["name"], "properties": {
                        "name": {"type": "string"},
                        "side": {"type": "string", "default": "left"},
                        "at": {"type": "object", "x-kubernetes-map-type": "atomic"}}}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "string"}},
                "steps": {"type": "array", "items": {"type": "string"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            }}),
            false,
        );
        let schema = schema.expect("a schema");
        let at = |steps: &[Option<&'static str>]| schema.merging(&mut steps.iter().copied());
        let Some(Merging::Keyed(keys)) = at(&[Some("parts")]) else {
            panic!("parts have keys");
        };
        let keys: Vec<_> = keys.iter().collect();
        assert_eq!(keys, [("name", None), ("side", Some(&json!("left")))]);
        for (steps, merging) in [
            (&[Some("parts"), None, Some("at")][..], Some(Merging::Whole)),
            (
                &[Some("parts"), None],
                Some(Merging::Members { named: true }),
            ),
            (&[Some("tags")], Some(Merging::Set)),
            (&[Some("steps")], Some(Merging::Whole)),
            (&[Some("labels")], Some(Merging::Members { named: false })),
            (&[Some("other")], None),
        ] {
            assert_eq!(at(steps), merging, "{steps:?}");
        }
    }
}
