//! Tests of the schemas that are refused, and of the bound of their depth.

use serde_json::{Map, json};

use super::*;

#[test]
#[allow(clippy::too_many_lines)] // a table
fn what_is_not_structural_is_refused() {
    for (x, said) in [
        (
            json!({}),
            "properties[x].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": ""}}),
            "properties[x].additionalProperties.type: Required value: must not be empty for specified object fields",
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
            r#"properties[x].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"#,
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
            json!({"type": "string", "anyOf": [{"default": []}]}),
            "properties[x].anyOf[0].default: Forbidden: must be undefined to be structural",
        ),
        (
            json!({"type": "string", "not": {"default": false}}),
            "properties[x].not.default: Forbidden: must be undefined to be structural",
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
            r#"properties[x].default: Invalid value: "integer":  in body must be of type string: "integer""#,
        ),
        (
            json!({"type": "boolean", "format": "date", "default": "x"}),
            r#"properties[x].default: Invalid value: "x":  in body must be of type date: "x""#,
        ),
        (
            json!({"type": "integer", "format": "double", "default": true}),
            r#"properties[x].default: Invalid value: "":  in body must be of type double: """#,
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true, "format": "bogus", "default": 1}),
            r#"properties[x].default: Invalid value: "int64":  in body must be of type bogus: "int64""#,
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true, "format": "int64", "default": 1}),
            r#"properties[x].default: Invalid value: "integer":  in body must be of type : "integer""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true, "format": "bogus", "default": 1}),
            r#"properties[x].default: Invalid value: "int64":  in body must be of type bogus: "int64""#,
        ),
        (
            json!({"type": "object", "default": {"a": 1}}),
            r#"properties[x].default: Invalid value: {"a":1}: must not have unknown fields"#,
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "properties": {"name": {"type": "integer", "multipleOf": 5}},
                "default": {"apiVersion": "v1", "kind": "X", "metadata": {"bogus": 1, "name": null}, "name": 1}}),
            "properties[x].default.name: Invalid value: 1: name in body should be a multiple of 5",
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true,
                "default": {"apiVersion": "v1", "kind": "X", "metadata": {"name": 5}}}),
            r#"properties[x].default.metadata: Invalid value: {"name":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#,
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
        (
            json!({"type": "array", "items": []}),
            "properties[x].items: Required value: must be specified",
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            "properties[x].items: Forbidden: items must be a schema object and not an array",
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": false}),
            "properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
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
fn a_default_of_the_root_is_a_whole_object() {
    let said = refused(json!({"type": "object", "default": {"kind": "A"}}));
    assert_eq!(said, ["default.apiVersion: Required value"]);
}

#[test]
fn a_default_of_an_integer_or_a_text_may_be_anything() {
    for default in [json!(1.5), json!(true), json!(["x"])] {
        let x = json!({"x-kubernetes-int-or-string": true, "default": default});
        let schema = json!({"type": "object", "properties": {"x": x}});
        assert!(StructuralSchema::read(&schema, false).is_ok(), "{default}");
    }
}

#[test]
fn wrong_defaults_are_told_by_their_path_and_by_that_within() {
    let x = |schema: Value| json!({"type": "object", "properties": {"x": schema}});
    let at = "properties[x].default";
    for (schema, said) in [
        (
            json!({"type": "integer", "maximum": 1, "default": 2}),
            format!("{at}: Invalid value: 2:  in body should be less than or equal to 1"),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, "default": {"a": "b"}}),
            format!(r#"{at}.a: Invalid value: "b": a in body should be at least 2 chars long"#),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "default": [1]}),
            format!(
                r#"{at}.[0]: Invalid value: "integer": [0] in body must be of type string: "integer""#
            ),
        ),
        (
            json!({"type": "integer", "format": "int32", "maximum": 1e12, "default": 2}),
            format!(
                r#"{at}: Invalid value: "": Maximum boundary value must be of type integer with format int32 in "#
            ),
        ),
        (
            json!({"type": "string", "not": {"enum": ["a"]}, "default": "a"}),
            format!(r#"{at}: Invalid value: "": "" must not validate the schema (not)"#),
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true, "default": {"kind": "Pod"}}),
            format!("{at}.apiVersion: Required value"),
        ),
    ] {
        assert_eq!(refused(x(schema)), [said]);
    }
}

#[test]
fn defaults_below_additional_properties_are_pruned_and_not_checked() {
    let values = json!({"type": "object", "default": {"a": 1, "b": 2}, "properties": {
        "a": {"type": "string"}, "c": {"type": "integer", "minimum": 5, "default": 1}}});
    let schema = about_x(json!({"type": "object", "additionalProperties": values}));
    let mut object = json!({"spec": {"x": {"k": null}}});
    schema.default(&mut object);
    assert_eq!(object, json!({"spec": {"x": {"k": {"a": 1, "c": 1}}}}));
    assert_eq!(schema.validate(&object, None).len(), 2);
}

#[test]
fn what_is_not_structural_is_told_before_defaults_and_only_if_it_can_be_read() {
    let whole = |x: Value, y: Value| json!({"type": "object", "properties": {"x": x, "y": y}});
    let wrong_default = json!({"type": "string", "default": 5});
    let no_type = json!({});
    let unreadable = json!({"type": "object", "$ref": "#/a"});
    for (x, y, fields) in [
        (&wrong_default, &no_type, vec!["properties[y].type"]),
        (&no_type, &unreadable, vec!["properties[y].$ref"]),
        (
            &wrong_default,
            &wrong_default,
            vec!["properties[x].default", "properties[y].default"],
        ),
    ] {
        let errors = StructuralSchema::read(&whole(x.clone(), y.clone()), false).unwrap_err();
        let found: Vec<_> = errors.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(found, fields);
    }
}

#[test]
fn types_that_are_unknown_are_shown_as_they_are_written() {
    let unknown = "Unsupported value: \"a\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"";
    assert_eq!(
        refused(json!({"type": "a", "properties": {"kind": {"type": "a"}}})),
        [
            r#"properties[kind].type: Invalid value: "a": must be string"#.to_owned(),
            r#"type: Invalid value: "a": must be object at the root"#.to_owned(),
            format!("type: {unknown}"),
            format!("properties[kind].type: {unknown}"),
        ]
    );
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "items": [],
        "x-kubernetes-list-map-keys": ["a"]});
    assert_eq!(
        refused(json!({"type": "object", "properties": {"x": list}})),
        [
            "properties[x].items: Required value: must be specified",
            r#"properties[x].items: Invalid value: {"Schema":null,"JSONSchemas":[]}: must only have a single schema if x-kubernetes-list-type is map"#,
        ]
    );
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
            r#"properties[x].x-kubernetes-list-map-keys: Invalid value: ["a","b"]: entries must all be names of item properties"#,
            "properties[x].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
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
    assert_eq!(lines(&schema.validate(&object, None)), [""; 0]);
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
    let errors = schema.validate(&object, None);
    assert!((1..10).contains(&errors.len()), "{}", errors.len());
    let removed = schema.prune(&mut object);
    assert!((1..10).contains(&removed.len()), "{}", removed.len());
    assert!(
        schema.prune(&mut object).is_empty(),
        "removed, though not told"
    );
}

#[test]
fn keywords_are_told_in_the_order_of_the_walk() {
    let schema = json!({"type": "null", "id": "i", "items": [{"id": "j"}], "uniqueItems": true,
        "additionalProperties": {"type": "int"}, "x-kubernetes-list-type": "sets",
        "properties": {"metadata": {"type": "object", "default": {}}}, "not": {"$ref": "r"}});
    let types =
        "supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"";
    assert_eq!(
        refused(schema),
        [
            format!("type: Unsupported value: \"null\": {types}"),
            "id: Forbidden: id is not supported".to_owned(),
            "type: Forbidden: type cannot be set to null, use nullable as an alternative".to_owned(),
            "items: Forbidden: items must be a schema object and not an array".to_owned(),
            "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic".to_owned(),
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive".to_owned(),
            format!("additionalProperties.type: Unsupported value: \"int\": {types}"),
            "properties[metadata].default: Forbidden: must not be set in top-level metadata".to_owned(),
            "not.$ref: Forbidden: $ref is not supported".to_owned(),
            "items[0].id: Forbidden: id is not supported".to_owned(),
            "type: Invalid value: \"null\": must be array if x-kubernetes-list-type is specified".to_owned(),
            "x-kubernetes-list-type: Unsupported value: \"sets\": supported values: \"atomic\", \"set\", \"map\"".to_owned(),
        ]
    );
}

#[test]
fn an_older_schema_excuses_what_it_has_itself() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items":
        {"type": "object", "nullable": true, "properties": {}}});
    let whole = json!({"type": "object", "properties": {"x": set, "y": {"type": "any"}}});
    let strictness = Strictness::of(std::iter::once(&whole));
    let read = |strictness| {
        let read =
            StructuralSchema::read_beside(&whole, false, &mut Patterns::default(), strictness);
        read.err().unwrap_or_default().len()
    };
    assert_eq!(read(Strictness::ALL), 3);
    assert_eq!(read(strictness), 0);
}

#[test]
fn members_that_are_not_named_may_be_refused() {
    let x = json!({"type": "object", "additionalProperties": false});
    let schema = about_x(x);
    let mut object = json!({"spec": {"x": {"a": {"b": 1}}}});
    assert_eq!(schema.prune(&mut object), ["spec.x.a.b"]);
    assert_eq!(
        lines(&schema.validate(&object, None)),
        [r#"spec.x: Invalid value: "a": spec.x.a in body is a forbidden property"#]
    );
}

#[test]
fn defaults_of_metadata_result_in_valid_metadata() {
    let embedded = |name: Value| {
        let metadata = json!({"type": "object", "properties": {"labels": {"type": "object",
            "additionalProperties": {"type": "string"}, "default": name}}});
        json!({"type": "object", "properties": {"x": {"type": "object",
            "x-kubernetes-embedded-resource": true, "properties": {"metadata": metadata}}}})
    };
    assert!(StructuralSchema::read(&embedded(json!({"a": "b"})), false).is_ok());
    let at = "properties[x].properties[metadata].properties[labels].default: Invalid value";
    let wrong = refused(embedded(json!({"a": " "})));
    assert!(
        wrong.len() == 1
            && wrong[0].starts_with(&format!("{at}: {{\"a\":\" \"}}: must result in valid metadata: metadata.labels: Invalid value: \" \": ")),
        "{wrong:?}"
    );
    let long = "n".repeat(5_000);
    let far = json!({"type": "object", "properties": {long: {"type": "string", "default": "x"}}});
    let mut whole = embedded(json!({"a": "b"}));
    whole["properties"]["x"]["properties"]["metadata"]["properties"]["spec"] = far;
    let wrong = refused(whole);
    assert!(
        wrong.len() == 1 && wrong[0].ends_with("must not be below names of more than 4096 bytes"),
        "{wrong:?}"
    );
    let wrong = refused(embedded(json!({"a": 5})));
    assert!(
        wrong.len() == 1 && wrong[0].contains("must result in valid metadata: metadata: Invalid value: {\"labels\":{\"a\":5}}: json: cannot unmarshal number"),
        "{wrong:?}"
    );
}
