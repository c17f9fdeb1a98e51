//! Defaults are filled in, and unknown members are dropped.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

#[test]
fn defaults_fill_what_is_not_said_and_nulls_that_are_not_allowed() {
    let text = |more: Value| {
        let mut text = json!({"type": "string"});
        text.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        text
    };
    let spec = about_x(json!({
        "type": "object",
        "default": {},
        "properties": {
            "foo": text(json!({"default": "d"})),
            "bar": text(json!({"default": "d", "nullable": true})),
            "baz": text(json!({})),
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": text(json!({"default": "d"}))}}}
        }
    }));
    for (object, filled) in [
        (
            json!({"spec": {}}),
            json!({"spec": {"x": {"foo": "d", "bar": "d"}}}),
        ),
        (json!({}), json!({})),
        (
            json!({"spec": {"x": {"foo": null, "bar": null, "baz": null}}}),
            json!({"spec": {"x": {"foo": "d", "bar": null}}}),
        ),
        (
            json!({"spec": {"x": {"foo": "", "list": [{}, {"a": "b"}, null]}}}),
            json!({"spec": {"x": {"foo": "", "bar": "d", "list": [{"a": "d"}, {"a": "b"}, null]}}}),
        ),
    ] {
        let mut object = object;
        spec.default(&mut object);
        assert_eq!(object, filled);
    }
}

#[test]
fn numbers_in_defaults_keep_their_form() {
    let default = r#"{"type": "object", "default": {"n": 1.0, "list": [2e0, 1.5]}, "properties": {
        "n": {"type": "integer"}, "list": {"type": "array", "items": {"type": "number", "default": 3.0}}}}"#;
    let spec = about_x(serde_json::from_str(default).expect("a schema"));
    let mut object = json!({"spec": {}});
    spec.default(&mut object);
    assert_eq!(
        object.to_string(),
        r#"{"spec":{"x":{"list":[2.0,1.5],"n":1.0}}}"#
    );
}

#[test]
fn pruning_follows_what_schemas_say_about_unknown_members() {
    for (x, value, kept, removed) in [
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object"}}}),
            json!({"a": {"b": 1}, "c": {"d": 1}}),
            json!({"a": {}, "c": {"d": 1}}),
            vec!["spec.x.a.b"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            json!({"k": {"a": "", "b": 1}}),
            json!({"k": {"a": ""}}),
            vec!["spec.x.k.b"],
        ),
        (
            json!({"type": "object", "additionalProperties": true}),
            json!({"k": 1, "l": {"a": 1}}),
            json!({"k": 1, "l": {}}),
            vec!["spec.x.l.a"],
        ),
        (
            json!({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            json!([{"x": 1}, {"a": ""}, {"y": 1}]),
            json!([{}, {"a": ""}, {}]),
            vec!["spec.x[0].x", "spec.x[2].y"],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"b": 1}, "c": 1}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}),
            vec!["spec.x.c", "spec.x.spec.b"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"metadata": {}, "kind": "Pod"}),
            json!({}),
            vec!["spec.x.kind", "spec.x.metadata"],
        ),
        (
            json!({"type": "integer"}),
            json!({"a": [{"b": 1}]}),
            json!({}),
            vec!["spec.x.a"],
        ),
    ] {
        let mut object = json!({"spec": {"x": value}});
        assert_eq!(about_x(x.clone()).prune(&mut object), removed, "{x}");
        assert_eq!(object, json!({"spec": {"x": kept}}), "{x}");
    }
}

#[test]
fn old_definitions_keep_what_no_schema_knows() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let schema = StructuralSchema::read(&schema, true).unwrap();
    let mut object = json!({"other": {"a": 1}, "spec": {"b": 1}});
    assert_eq!(schema.prune(&mut object), ["spec.b"]);
    assert_eq!(object, json!({"other": {"a": 1}, "spec": {}}));
}

#[test]
fn embedded_objects_say_what_they_are() {
    let x = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(
        said_of_x(x.clone(), json!({"kind": "", "metadata": {"labels": {"-": "a"}}})),
        [
            "spec.x.apiVersion: Required value".to_owned(),
            r#"spec.x.kind: Invalid value: "": must not be empty"#.to_owned(),
            r#"spec.x.metadata.labels: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#.to_owned(),
        ]
    );
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}});
    assert_eq!(said_of_x(x, pod), [""; 0]);
}

/// Schemas of a few levels over the members `a`, `b` and `c`.
fn some_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "d"})),
        Just(json!({"type": "string", "default": "d", "nullable": true})),
        Just(json!({"type": "integer", "default": 1})),
        Just(json!({"type": "object"})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"x-kubernetes-int-or-string": true, "nullable": true})),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        let members = prop::collection::btree_map("[abc]", inner.clone(), 1..3);
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|all| json!({"type": "object", "additionalProperties": all})),
            (members, any::<bool>(), any::<bool>()).prop_map(|(members, default, keep)| {
                let mut schema = json!({"type": "object", "properties": members});
                if default {
                    schema["default"] = json!({});
                }
                if keep {
                    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
                }
                schema
            }),
        ]
    })
}

fn some_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), Just(json!(1)), Just(json!("s"))];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abcd]", inner, 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn doing_it_twice_changes_nothing(x in some_schema(), value in some_value()) {
        let schema = about_x(x);
        let mut object = json!({"spec": {"x": value}});
        schema.prune(&mut object);
        let pruned = object.clone();
        prop_assert!(schema.prune(&mut object).is_empty());
        prop_assert_eq!(&object, &pruned);
        schema.default(&mut object);
        let defaulted = object.clone();
        schema.default(&mut object);
        prop_assert_eq!(&object, &defaulted);
        prop_assert!(schema.prune(&mut object).is_empty(), "defaults are known");
        let _ = schema.validate(&object, None);
    }
}

#[test]
fn embedded_objects_of_other_types_cannot_be_decoded() {
    let x = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    let schema = about_x(json!({"type": "array", "items": x}));
    for (value, why) in [
        (
            json!({"kind": null}),
            "kind: Invalid value: null: must be a string",
        ),
        (
            json!({"apiVersion": 5}),
            "apiVersion: Invalid value: 5: must be a string",
        ),
    ] {
        let object = json!({"spec": {"x": [value]}});
        let found = schema.unknown_fields(&object);
        assert_eq!(found, Err(format!("spec.x[0].{why}")));
    }
    let known = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "properties": {"kind": {"type": "string"}}});
    let object = json!({"spec": {"x": {"kind": null}}});
    assert_eq!(about_x(known).unknown_fields(&object), Ok(Vec::new()));
}
