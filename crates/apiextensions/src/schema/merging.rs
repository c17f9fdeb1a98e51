//! The rules by which the values of a type merge in server-side apply: what its lists and objects are, as
//! `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` say.

use ringwatch_apply::{ItemSchema, ListKeys, MergeSchema, Merging};
use serde_json::Value;

use super::StructuralSchema;
use super::kind::JsonType;
use super::node::{ListType, SchemaNode};

impl MergeSchema for StructuralSchema {
    fn declares(&self, object: &Value) -> bool {
        let unknown = self.unknown_fields(object);
        unknown.is_ok_and(|unknown| unknown.is_empty())
    }

    fn merging(&self, steps: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'_>> {
        let mut node = &self.root;
        let mut is_whole_object = false;
        while let Some(step) = steps.next() {
            if is_whole_object && step == Some("metadata") {
                return metadata_merging(steps);
            }
            node = match step {
                Some(name) => node.member(name)?,
                None => node.items.as_deref()?,
            };
            is_whole_object = node.embedded;
        }
        Some(match (node.kind, &node.list) {
            (Some(JsonType::Array), ListType::Atomic) => Merging::Whole,
            (Some(JsonType::Array), ListType::Set) => Merging::Set,
            (Some(JsonType::Array), ListType::Map(names)) => Merging::Keyed(ListKeys {
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

/// Returns how a part of the metadata of an embedded object merges, whose lists are those of all metadata.
fn metadata_merging<'a>(steps: &mut dyn Iterator<Item = Option<&str>>) -> Option<Merging<'a>> {
    let named = match (steps.next(), steps.next()) {
        (Some(Some("labels" | "annotations")), None) => false,
        (Some(Some("labels" | "annotations")), Some(_)) => return None,
        _ => true,
    };
    Some(Merging::Members { named })
}

impl ItemSchema for SchemaNode {
    fn default_of(&self, member: &str) -> Option<&Value> {
        self.member(member)?.default.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::Error;
    use ringwatch_apply::{Manager, apply};
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
                "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true},
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
            (&[Some("pod"), Some("spec")], None),
            (
                &[Some("pod"), Some("metadata"), Some("name")],
                Some(Merging::Members { named: true }),
            ),
            (
                &[Some("pod"), Some("metadata"), Some("labels")],
                Some(Merging::Members { named: false }),
            ),
            (
                &[Some("pod"), Some("metadata"), Some("labels"), Some("a")],
                None,
            ),
        ] {
            assert_eq!(at(steps), merging, "{steps:?}");
        }
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": {"a": "b"}});
        assert!(schema.declares(&json!({"tags": ["a"], "labels": {"a": "b"}, "pod": pod})));
        for undeclared in [
            json!({"other": 1}),
            json!({"parts": [{"name": "a", "other": 1}]}),
        ] {
            assert!(!schema.declares(&undeclared), "{undeclared}");
        }
    }

    /// Returns a manager of objects of a custom type.
    fn manager<'a>(name: &'a str, schema: &'a StructuralSchema) -> Manager<'a> {
        Manager {
            name,
            api_version: "example.com/v1",
            subresource: "",
            has_status_subresource: false,
            custom: Some(schema),
            time: None,
        }
    }

    /// Returns a custom type whose parts differ by name and side, and whose place is one whole.
    fn machines() -> StructuralSchema {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "parts": {
                "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "side"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "side": {"type": "string", "default": "left"},
                    "count": {"type": "integer"}, "colour": {"type": "string"}}}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "place": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "x": {"type": "integer"}, "y": {"type": "integer"}}},
        }}}});
        StructuralSchema::read(&schema, false).expect("a schema")
    }

    #[test]
    fn custom_lists_merge_as_their_schema_says() {
        let machines = machines();
        let of = |name: &'static str| manager(name, &machines);
        let machine = |spec: Value| {
            json!({"apiVersion": "example.com/v1", "kind": "Machine",
                "metadata": {"name": "m"}, "spec": spec})
        };
        let one = machine(json!({"tags": ["a"], "place": {"x": 1},
            "parts": [{"name": "wheel", "side": "left", "count": 2}]}));
        let first = apply(None, &one, &of("one"), false).expect("applied");
        let other = machine(json!({"tags": ["b"], "parts": [
            {"name": "wheel", "colour": "red"}, {"name": "wheel", "side": "right"}]}));
        let both = apply(Some(&first), &other, &of("other"), false).expect("merged");
        assert_eq!(
            both["spec"],
            json!({"tags": ["a", "b"], "place": {"x": 1}, "parts": [
                {"name": "wheel", "side": "left", "count": 2, "colour": "red"},
                {"name": "wheel", "side": "right"}]})
        );
        let fields = &both["metadata"]["managedFields"][1]["fieldsV1"]["f:spec"];
        let left = r#"k:{"name":"wheel","side":"left"}"#;
        assert_eq!(
            fields["f:parts"][left],
            json!({".": {}, "f:name": {}, "f:colour": {}})
        );
        assert_eq!(fields["f:tags"], json!({"v:\"b\"": {}}));

        // What is one whole has one manager, and what is no longer wanted goes.
        let place = machine(json!({"place": {"y": 2}}));
        let conflict = apply(Some(&both), &place, &of("other"), false).expect_err("a conflict");
        let Error::ApplyConflict { causes } = conflict else {
            panic!("{conflict}");
        };
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].1, ".spec.place");
        let less = machine(json!({"tags": ["b"]}));
        let less = apply(Some(&both), &less, &of("other"), false).expect("applied");
        let left = json!([{"name": "wheel", "side": "left", "count": 2}]);
        assert_eq!(
            (&less["spec"]["tags"], &less["spec"]["parts"]),
            (&json!(["a", "b"]), &left)
        );
    }

    #[test]
    fn an_empty_list_of_managed_fields_is_none_in_a_custom_object() {
        let machines = machines();
        let manager = manager("one", &machines);
        let machine = json!({"apiVersion": "example.com/v1", "kind": "Machine", "metadata": {"name": "m"},
            "spec": {"tags": ["a"]}});
        let live = apply(None, &machine, &manager, false).expect("applied");
        for (sent, is_reset) in [(json!([]), false), (json!([{"operation": ""}]), true)] {
            let mut new = live.clone();
            new["metadata"]["managedFields"] = sent;
            ringwatch_apply::update(Some(&live), &mut new, &manager);
            let entries = &new["metadata"]["managedFields"];
            assert_eq!(entries.is_null(), is_reset, "{entries}");
        }
    }

    #[test]
    fn items_of_a_custom_list_have_one_key_each() {
        let machines = machines();
        let manager = manager("one", &machines);
        let twice = json!({"apiVersion": "example.com/v1", "kind": "Machine",
            "metadata": {"name": "m", "namespace": "default"},
            "spec": {"parts": [{"name": "wheel"}, {"name": "wheel", "side": "left"}]}});
        let Err(Error::NotTyped(message)) = apply(None, &twice, &manager, false) else {
            panic!("two items with one key are taken");
        };
        assert!(
            message
                .ends_with(r#".spec.parts: duplicate entries for key [name="wheel",side="left"]"#),
            "{message}"
        );
    }
}
