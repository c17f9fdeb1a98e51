//! Schemas as users write them, and what follows from them.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::registry::Error;

fn schema(value: Value) -> StructuralSchema {
    StructuralSchema::read(&value, false).unwrap()
}

/// A schema of an object with one member `x` in its `spec`.
fn about_x(x: Value) -> StructuralSchema {
    let spec = json!({"type": "object", "properties": {"x": x}});
    schema(json!({"type": "object", "properties": {"spec": spec}}))
}

fn lines(errors: &[FieldError]) -> Vec<String> {
    let line = |error: &FieldError| format!("{}: {}", error.field, error.message());
    errors.iter().map(line).collect()
}

fn refused(value: Value) -> Vec<String> {
    lines(&StructuralSchema::read(&value, false).unwrap_err())
}

fn said_of_x(x: Value, value: Value) -> Vec<String> {
    lines(&about_x(x).validate(&json!({"spec": {"x": value}})))
}

/// What the replayed definition says about its objects.
pub(super) fn widget() -> StructuralSchema {
    schema(json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["color"],
                "x-kubernetes-validations": [
                    {"rule": "self.replicas <= 10", "message": "too many replicas"}
                ],
                "properties": {
                    "color": {"type": "string", "enum": ["red", "green", "blue"]},
                    "replicas": {"type": "integer", "default": 1, "minimum": 0},
                    "note": {"type": "string", "maxLength": 8}
                }
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
        }
    }))
}

#[test]
fn values_outside_an_enum_and_long_ones_are_told_in_kubernetes_words() {
    let object = json!({"spec": {"color": "pink", "note": "too long note", "replicas": 1}});
    let error = Error::Invalid {
        kind: "Widget.peers.example.com".to_owned(),
        name: "w3".to_owned(),
        errors: widget().validate(&object),
    };
    assert_eq!(
        error.to_string(),
        r#"Widget.peers.example.com "w3" is invalid: [spec.color: Unsupported value: "pink": supported values: "red", "green", "blue", spec.note: Too long: may not be more than 8 bytes]"#
    );
}

#[test]
fn a_missing_member_is_told_by_its_own_path() {
    let errors = widget().validate(&json!({"spec": {"replicas": 1}}));
    assert_eq!(lines(&errors), ["spec.color: Required value"]);
    assert_eq!(errors[0].kind.reason(), "FieldValueRequired");
}

#[test]
fn an_unknown_member_is_removed_and_told() {
    let mut object = json!({
        "apiVersion": "peers.example.com/v1", "kind": "Widget", "metadata": {"name": "w5"},
        "spec": {"color": "red", "bogus": 1}
    });
    assert_eq!(widget().prune(&mut object), ["spec.bogus"]);
    assert_eq!(object["spec"], json!({"color": "red"}));
    assert_eq!(object["metadata"], json!({"name": "w5"}));
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn values_are_checked_as_kubernetes_checks_them() {
    let long = "must validate one and only one schema (oneOf)";
    for (x, value, said) in [
        (json!({"type": "integer"}), json!(3), ""),
        (json!({"type": "integer"}), json!(3.0), ""),
        (
            json!({"type": "integer"}),
            json!("a"),
            r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#,
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
        ),
        (json!({"type": "number"}), json!(1), ""),
        (
            json!({"type": "string"}),
            json!(null),
            r#"spec.x: Invalid value: "null": spec.x in body must be of type string: "null""#,
        ),
        (json!({"type": "string", "nullable": true}), json!(null), ""),
        (
            json!({"type": "string", "enum": ["a"], "nullable": true}),
            json!(null),
            r#"spec.x: Unsupported value: null: supported values: "a""#,
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!(3),
            r#"spec.x: Invalid value: "int64": spec.x in body must be of type date: "int64""#,
        ),
        (
            json!({"type": "string", "format": "ipv4"}),
            json!("x"),
            r#"spec.x: Invalid value: "x": spec.x in body must be of type ipv4: "x""#,
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            "",
        ),
        (json!({"type": "integer", "maximum": 10}), json!(10), ""),
        (
            json!({"type": "integer", "maximum": 10}),
            json!(11),
            "spec.x: Invalid value: 11: spec.x in body should be less than or equal to 10",
        ),
        (
            json!({"type": "integer", "maximum": 10, "exclusiveMaximum": true}),
            json!(10),
            "spec.x: Invalid value: 10: spec.x in body should be less than 10",
        ),
        (
            json!({"type": "integer", "minimum": 0}),
            json!(-1),
            "spec.x: Invalid value: -1: spec.x in body should be greater than or equal to 0",
        ),
        (
            json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true}),
            json!(0.5),
            "spec.x: Invalid value: 0.5: spec.x in body should be greater than 0.5",
        ),
        (
            json!({"type": "integer", "multipleOf": 3}),
            json!(7),
            "spec.x: Invalid value: 7: spec.x in body should be a multiple of 3",
        ),
        (json!({"type": "number", "multipleOf": 0.5}), json!(1.5), ""),
        (
            json!({"type": "string", "minLength": 2}),
            json!("\u{e4}"),
            "spec.x: Invalid value: \"\u{e4}\": spec.x in body should be at least 2 chars long",
        ),
        (
            json!({"type": "string", "maxLength": 1}),
            json!("\u{e4}"),
            "",
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            r#"spec.x: Invalid value: "b": spec.x in body should match '^a+$'"#,
        ),
        (json!({"type": "string", "pattern": "a"}), json!("bab"), ""),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a", "b"]),
            "spec.x: Too many: 2: must have at most 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            "spec.x: Invalid value: 0: spec.x in body should have at least 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", 1]),
            r#"spec.x[1]: Invalid value: "integer": spec.x[1] in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1}),
            json!({"a": "", "b": ""}),
            "spec.x: Too many: 2: must have at most 1 items",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"a": 1}),
            r#"spec.x.a: Invalid value: "integer": spec.x.a in body must be of type string: "integer""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!("50%"),
            "",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            r#"spec.x: Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            json!(5),
            "",
        ),
        (
            json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}),
            json!(1),
            "",
        ),
        (
            json!({"type": "integer", "not": {"enum": [1]}}),
            json!(1),
            r#"<nil>: Invalid value: "": "spec.x" must not validate the schema (not)"#,
        ),
        (
            json!({"type": "integer", "oneOf": [{"minimum": 0}, {"maximum": 5}]}),
            json!(3),
            &format!(r#"<nil>: Invalid value: "": "spec.x" {long}. Found 2 valid alternatives"#),
        ),
    ] {
        let expected: Vec<&str> = [said].into_iter().filter(|said| !said.is_empty()).collect();
        assert_eq!(said_of_x(x.clone(), value.clone()), expected, "{x} {value}");
    }
}

#[test]
fn alternatives_that_all_fail_tell_the_closest_one_too() {
    let x = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]
    });
    assert_eq!(
        said_of_x(x, json!({})),
        [
            r#"<nil>: Invalid value: "": "spec.x" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.x.a: Required value"
        ]
    );
    let x = json!({"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 9}]});
    assert_eq!(
        said_of_x(x, json!(1)),
        [
            "spec.x: Invalid value: 1: spec.x in body should be greater than or equal to 5",
            r#"<nil>: Invalid value: "": "spec.x" must validate all the schemas (allOf)"#,
        ]
    );
}

#[test]
fn items_of_sets_and_maps_differ() {
    let set =
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"});
    assert_eq!(
        said_of_x(set, json!(["a", "b", "a", "a"])),
        [r#"spec.x[2]: Duplicate value: "a""#]
    );
    let map = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {
                "port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"},
                "name": {"type": "string"}
            }
        }
    });
    let ports = json!([
        {"port": 80, "protocol": "TCP", "name": "a"},
        {"port": 80, "protocol": "UDP", "name": "b"},
        {"port": 80, "protocol": "TCP", "name": "c"}
    ]);
    assert_eq!(
        said_of_x(map, ports),
        [r#"spec.x[2]: Duplicate value: {"port":80,"protocol":"TCP"}"#]
    );
}

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
            "spec.x.kind: Required value".to_owned(),
            r#"spec.x.metadata.labels: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#.to_owned(),
        ]
    );
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}});
    assert_eq!(said_of_x(x, pod), [""; 0]);
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn what_is_not_structural_is_refused() {
    for (x, said) in [
        (
            json!({}),
            "properties[x].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "array"}),
            "properties[x].items: Required value: must be specified",
        ),
        (
            json!({"type": "array", "items": {}}),
            "properties[x].items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "text"}),
            r#"properties[x].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ),
        (
            json!({"type": "string", "pattern": "("}),
            r#"properties[x].pattern: Invalid value: "(": must be a valid regular expression, but isn't: unclosed group"#,
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string"}]}),
            "properties[x].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "string", "not": {"nullable": true}}),
            "properties[x].not.nullable: Forbidden: must be false to be structural",
        ),
        (
            json!({"type": "string", "allOf": [{"properties": {"a": {"default": 1}}}]}),
            "properties[x].allOf[0].properties[a].default: Forbidden: must be undefined to be structural",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            "properties[x].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ),
        (
            json!({"type": "object", "$ref": "#/a"}),
            "properties[x].$ref: Forbidden: $ref is not supported",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            "properties[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            json!({"type": "string", "default": 5}),
            r#"properties[x].default: Invalid value: "integer": properties[x].default in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "object", "default": {"a": 1}}),
            r#"properties[x].default: Invalid value: {"a":1}: must not have unknown fields"#,
        ),
        (
            json!({"type": "string", "x-kubernetes-list-type": "set"}),
            r#"properties[x].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#,
        ),
        (
            json!({"type": "string", "maxLength": "a"}),
            r#"properties[x].maxLength: Invalid value: "a": must be an integer"#,
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!(5),
            "properties[x]: Invalid value: 5: must be a schema",
        ),
    ] {
        let whole = json!({"type": "object", "properties": {"x": x}});
        assert_eq!(refused(whole), [said]);
    }
    for (schema, said) in [
        (
            json!({}),
            "type: Required value: must not be empty at the root",
        ),
        (
            json!({"type": "string"}),
            r#"type: Invalid value: "string": must be object at the root"#,
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
    ] {
        assert_eq!(refused(schema), [said]);
    }
}

#[test]
fn keys_of_a_list_are_scalars_that_are_always_there() {
    let list = json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object", "properties": {"a": {"type": "string"}}}
    });
    assert_eq!(
        refused(json!({"type": "object", "properties": {"x": list}})),
        [
            "properties[x].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
            r#"properties[x].x-kubernetes-list-map-keys: Invalid value: ["a","b"]: entries must all be names of item properties"#,
        ]
    );
}

#[test]
fn deep_schemas_and_objects_need_no_deep_stack() {
    let mut deep = json!({"type": "object"});
    for _ in 0..1000 {
        let properties = Value::from(Map::from_iter([("a".to_owned(), deep)]));
        let members = [
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), properties),
        ];
        deep = Value::from(Map::from_iter(members));
    }
    let said = refused(deep);
    assert_eq!(said.len(), 1);
    assert!(
        said[0].ends_with("must not nest deeper than 128 schemas"),
        "{said:?}"
    );

    let x = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = about_x(x);
    let mut object = json!(1);
    for _ in 0..1000 {
        object = Value::from(vec![Value::from(Map::from_iter([(
            "a".to_owned(),
            object,
        )]))]);
    }
    let mut object = json!({"spec": {"x": {"a": object.clone()}, "y": object}});
    assert_eq!(schema.prune(&mut object), ["spec.y"]);
    schema.default(&mut object);
    assert_eq!(lines(&schema.validate(&object)), [""; 0]);
}

#[test]
fn what_is_told_is_bounded() {
    let key = "k".repeat(100_000);
    let items: Vec<Value> = (0..1000).map(|_| json!({"b": 1})).collect();
    let item =
        json!({"type": "object", "required": ["c"], "properties": {"c": {"type": "string"}}});
    let map = json!({"type": "object", "additionalProperties": {"type": "array", "items": item}});
    let schema = about_x(map);
    let mut object = json!({"spec": {"x": {key: items}}});
    let errors = schema.validate(&object);
    assert!((1..10).contains(&errors.len()), "{}", errors.len());
    let removed = schema.prune(&mut object);
    assert!((1..10).contains(&removed.len()), "{}", removed.len());
    assert!(
        schema.prune(&mut object).is_empty(),
        "removed, though not told"
    );
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
        let _ = schema.validate(&object);
    }
}
