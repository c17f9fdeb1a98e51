//! The rules by which the values of a type merge in server-side apply: what its lists and objects are, as
//! `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` say.

use ringwatch_apply::{
    ItemSchema, ListKeys, MemberSchema, MergeSchema, Merging, Takes, ValueSchema,
};
use serde_json::Value;

use super::StructuralSchema;
use super::kind::JsonType;
use super::node::{Additional, ListType, SchemaNode};

impl MergeSchema for StructuralSchema {
    fn values(&self) -> Option<&dyn ValueSchema> {
        Some(&self.root)
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

/// The types as kube-apiserver converts a schema to OpenAPI and that to one of structured-merge-diff.
impl ValueSchema for SchemaNode {
    fn takes(&self) -> Takes {
        match self.kind {
            None => Takes::Any,
            Some(JsonType::Object) => Takes::Members,
            Some(JsonType::Array) => Takes::List,
            Some(JsonType::Boolean) => Takes::Boolean,
            Some(JsonType::Integer | JsonType::Number) => Takes::Number,
            Some(JsonType::String) if self.has_format => Takes::AnyScalar,
            Some(JsonType::String) => Takes::Text,
        }
    }

    fn is_whole_object(&self) -> bool {
        self.embedded
    }

    fn preserves_unknown(&self) -> bool {
        self.preserve_unknown
    }

    fn member(&self, name: &str) -> MemberSchema<'_> {
        if let Some(own) = self.properties.get(name) {
            return MemberSchema::Known(own);
        }
        match &self.additional {
            Some(Additional::Schema(schema)) => MemberSchema::Known(&**schema),
            Some(Additional::Any) => MemberSchema::Any,
            Some(Additional::Nothing) => MemberSchema::Undeclared,
            None if self.properties.is_empty() && !self.embedded => MemberSchema::Any,
            None => MemberSchema::Undeclared,
        }
    }

    fn items(&self) -> Option<&dyn ValueSchema> {
        self.items.as_deref().map(|it| it as &dyn ValueSchema)
    }
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
    fn what_is_applied_has_the_types_of_the_schema() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "on": {"type": "boolean"},
            "date": {"type": "string", "format": "date-time"}, "odd": {"type": "string", "format": "zz"},
            "bytes": {"type": "string", "format": "byte"}, "port": {"x-kubernetes-int-or-string": true},
            "list": {"type": "array", "items": {"type": "string"}}, "free": {"type": "object"},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "of": {"type": "object", "properties": {"text": {"type": "string"}}}}},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                "spec": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        }}}});
        let schema = StructuralSchema::read(&schema, false).expect("a schema");
        let applied = |spec: Value| {
            let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec});
            apply(None, &thing, &manager("one", &schema), false)
        };
        for spec in [
            json!({"count": 1.5, "date": 5, "odd": true, "port": [1], "list": [null], "free": {"a": {}}}),
            json!({"kept": {"x": 1, "of": {"y": []}}, "pod": {"metadata": {"labels": {"a": null}}}}),
        ] {
            assert!(applied(spec.clone()).is_ok(), "{spec}");
        }
        let text = "expected string, got &value.valueUnstructured{Value:5}";
        for (spec, complaint) in [
            (json!({"text": 5}), format!(".text: {text}")),
            (
                json!({"count": "x"}),
                ".count: expected numeric (int or float), got string".to_owned(),
            ),
            (
                json!({"on": []}),
                ".on: expected boolean, got &{[]}".to_owned(),
            ),
            (
                json!({"date": {}}),
                ".date: expected any scalar, got &{map[]}".to_owned(),
            ),
            (json!({"bytes": 5}), format!(".bytes: {text}")),
            (
                json!({"list": {"a": 1}}),
                ".list: expected list, got &{map[a:1]}".to_owned(),
            ),
            (
                json!({"free": true}),
                ".free: expected map, got &{true}".to_owned(),
            ),
            (json!({"map": {"a": 5}}), format!(".map.a: {text}")),
            (
                json!({"kept": {"of": {"text": 5}}}),
                format!(".kept.of.text: {text}"),
            ),
            (
                json!({"pod": {"spec": {"a": 5}}}),
                format!(".pod.spec.a: {text}"),
            ),
            (json!({"pod": {"kind": 5}}), format!(".pod.kind: {text}")),
            (
                json!({"pod": {"x": 5}}),
                ".pod.x: field not declared in schema".to_owned(),
            ),
            (
                json!({"x": 5}),
                ".x: field not declared in schema".to_owned(),
            ),
        ] {
            let refused = applied(spec.clone()).map_err(|error| error.to_string());
            let start =
                "failed to create typed patch object (/t; example.com/v1, Kind=Thing): .spec";
            assert_eq!(refused, Err(format!("{start}{complaint}")), "{spec}");
        }
    }

    #[test]
    fn nothing_is_applied_to_what_is_no_longer_of_its_type() {
        let of = |kind: &str| {
            let schema = json!({"type": "object", "properties": {"a": {"type": kind}, "b": {"type": "string"}}});
            StructuralSchema::read(&schema, false).expect("a schema")
        };
        let thing = |rest: Value| {
            let mut thing =
                json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
            let members = rest.as_object().expect("an object").clone();
            thing.as_object_mut().expect("an object").extend(members);
            thing
        };
        let (text, number) = (of("string"), of("integer"));
        let live = thing(json!({"a": "1"}));
        let tracked = apply(None, &live, &manager("one", &text), false).expect("applied");
        let why = ".a: expected numeric (int or float), got string";
        for (live, start) in [
            (
                tracked,
                "failed to create typed live object (/t; example.com/v1, Kind=Thing)",
            ),
            (
                live,
                "failed to create manager for existing fields: failed to convert new object (/t; example.com/v1, \
                 Kind=Thing) to smd typed",
            ),
        ] {
            let next = thing(json!({"b": "x"}));
            let refused = apply(Some(&live), &next, &manager("two", &number), true);
            let refused = refused.map_err(|error| error.to_string());
            assert_eq!(refused, Err(format!("{start}: {why}")));
        }
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
    fn what_is_not_of_its_type_has_no_managers() {
        let schema = json!({"type": "object", "properties": {
            "rows": {"type": "array", "x-kubernetes-list-type": "set",
                "items": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}}},
            "text": {"type": "string"}}});
        let schema = StructuralSchema::read(&schema, false).expect("a schema");
        let manager = manager("one", &schema);
        let thing = |rows: Value, text: &str| {
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"},
                "rows": rows, "text": text})
        };
        let entries_after = |live: Option<&Value>, mut new: Value| {
            ringwatch_apply::update(live, &mut new, &manager);
            new["metadata"]["managedFields"].take()
        };
        // A set has no lists.
        let (typed, odd) = (thing(json!([]), "a"), thing(json!([["a"]]), "a"));
        let entries = entries_after(None, typed.clone());
        assert!(entries.is_array(), "{entries}");
        assert!(entries_after(None, odd.clone()).is_null());
        let mut with_odd_entries = typed.clone();
        with_odd_entries["metadata"]["managedFields"] = json!([{"fieldsV1": 5}]);
        assert_eq!(entries_after(None, with_odd_entries), entries);
        let tracked = |mut thing: Value| {
            thing["metadata"]["managedFields"] = entries.clone();
            thing
        };
        let (typed, odd) = (tracked(typed), tracked(odd));
        assert!(entries_after(Some(&typed), odd.clone()).is_null());
        assert!(entries_after(Some(&odd), typed.clone()).is_null());
        let other = tracked(thing(json!([]), "b"));
        assert_eq!(entries_after(Some(&typed), other), entries);
        // Then what a configuration is like does not matter.
        let (live, mut config) = (thing(json!([["a"]]), "a"), thing(json!([]), "b"));
        config["metadata"]["managedFields"] = json!([]);
        let refused = apply(Some(&live), &config, &manager, true).map_err(|it| it.to_string());
        assert_eq!(
            refused,
            Err("failed to create manager for existing fields: failed to convert new object (/t; example.com/v1, \
                 Kind=Thing) to smd typed: .rows: element 0: not supported: associative list with lists as elements"
                .to_owned())
        );
    }

    #[test]
    fn items_of_a_custom_list_have_one_key_each() {
        let machines = machines();
        let manager = manager("one", &machines);
        let twice = json!({"apiVersion": "example.com/v1", "kind": "Machine",
            "metadata": {"name": "m", "namespace": "default"},
            "spec": {"parts": [{"name": "wheel"}, {"name": "wheel", "side": "left"}]}});
        let Err(Error::Untranslated(message)) = apply(None, &twice, &manager, false) else {
            panic!("two items with one key are taken");
        };
        assert!(
            message
                .ends_with(r#".spec.parts: duplicate entries for key [name="wheel",side="left"]"#),
            "{message}"
        );
    }
}
