//! How the values of a type merge in server-side apply: what its lists and objects are, as
//! `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` say.

use serde_json::Value;

use super::StructuralSchema;
use super::node::{Kind, ListType, Node};

/// How a value merges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Merging<'a> {
    /// As one whole.
    Whole,
    /// Member by member, whose names are the type's, not the client's, if `named`.
    Members {
        /// True if clients may not add members that the schema does not name.
        named: bool,
    },
    /// Item by item, each its own key.
    Set,
    /// Item by item, told apart by members.
    Keyed(ListKeys<'a>),
}

/// The members that tell the items of a list apart.
#[derive(Clone, Copy, Debug)]
pub struct ListKeys<'a> {
    names: &'a [String],
    items: Option<&'a Node>,
}

impl<'a> ListKeys<'a> {
    /// Their names, each with its value where an item lacks it.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Option<&'a Value>)> {
        self.names.iter().map(move |name| {
            let member = self.items.and_then(|items| items.member(name));
            (name.as_str(), member.and_then(|it| it.default.as_ref()))
        })
    }
}

impl PartialEq for ListKeys<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
    }
}

impl StructuralSchema {
    /// How what is behind these steps merges; a step is the name of a member, or none to an item of
    /// a list. `None` where the schema says nothing.
    pub fn merging<'p>(
        &self,
        mut steps: impl Iterator<Item = Option<&'p str>>,
    ) -> Option<Merging<'_>> {
        let node = steps.try_fold(&self.root, |node, step| match step {
            Some(name) => node.member(name),
            None => node.items.as_deref(),
        })?;
        Some(match (node.kind, &node.list) {
            (Some(Kind::Array), ListType::Atomic) => Merging::Whole,
            (Some(Kind::Array), ListType::Set) => Merging::Set,
            (Some(Kind::Array), ListType::Map(names)) => Merging::Keyed(ListKeys {
                names,
                items: node.items.as_deref(),
            }),
            _ if node.atomic => Merging::Whole,
            _ => Merging::Members {
                named: node.additional.is_none(),
            },
        })
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
        let at = |steps: &[Option<&'static str>]| schema.merging(steps.iter().copied());
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
