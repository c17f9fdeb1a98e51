//! Schemas as users write them, and what follows from them: here, what values they allow.

mod defaulting;
mod ratcheting;
mod structure;

use ringwatch_apimachinery::Error;
use serde_json::json;

use super::*;

fn schema(value: Value) -> StructuralSchema {
    StructuralSchema::read(&value, false).unwrap()
}

/// Returns a schema of an object with one member `x` in its `spec`.
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
    lines(&about_x(x).validate(&json!({"spec": {"x": value}}), None))
}

#[test]
fn patterns_of_a_schema_are_bounded_together() {
    let properties = |count: usize| {
        let property = |number: usize| {
            let pattern = format!(r"^\pL{{15}}{number}$");
            (
                format!("p{number}"),
                json!({"type": "string", "pattern": pattern}),
            )
        };
        let properties: serde_json::Map<String, Value> = (0..count).map(property).collect();
        json!({"type": "object", "properties": properties})
    };
    schema(properties(10));
    let refused = refused(properties(2_000));
    let why =
        "must not take more than 8 MiB with the other patterns of the definition; simplify some";
    assert!(refused[0].contains(why), "{}", refused[0]);
}

#[test]
fn patterns_may_name_letters_of_all_scripts() {
    let hostname = json!({
        "type": "string",
        "pattern": r"^([a-zA-Z\p{S}\p{L}]((-?[a-zA-Z\p{S}\p{L}]{0,62})?)|([a-zA-Z\p{L}]{0,61}[a-z\p{L}])){1,}$",
    });
    let said = |text: &str| said_of_x(hostname.clone(), json!(text)).len();
    assert_eq!((said("b\u{fc}cher"), said("1")), (0, 1));
}

#[test]
fn texts_that_take_too_long_to_match_are_refused_whatever_alternatives_say() {
    let slow = json!({"type": "string", "pattern": "(a|b)*a(a|b){500}c"});
    let mut seed = 1_u32;
    let letter = |_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 31 == 0 { 'a' } else { 'b' }
    };
    let text: String = (0..300_000).map(letter).collect();
    let why = "takes too long to match '(a|b)*a(a|b){500}c'; shorten it, or simplify the pattern";
    for x in [
        slow.clone(),
        json!({"type": "string", "not": {"pattern": slow["pattern"]}}),
        json!({"type": "string", "anyOf": [{"pattern": slow["pattern"]}, {"minLength": 1}]}),
    ] {
        let said = said_of_x(x.clone(), json!(text));
        assert!(said.iter().any(|line| line.contains(why)), "{x}");
    }
    assert!(
        said_of_x(
            json!({"type": "string", "not": {"pattern": slow["pattern"]}}),
            json!("ab")
        )
        .is_empty()
    );
}

/// Returns the schema of the definition in the recorded answers.
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
        errors: widget().validate(&object, None),
    };
    assert_eq!(
        error.to_string(),
        r#"Widget.peers.example.com "w3" is invalid: [spec.color: Unsupported value: "pink": supported values: "red", "green", "blue", spec.note: Too long: may not be more than 8 bytes]"#
    );
}

#[test]
fn a_missing_member_is_told_by_its_own_path() {
    let errors = widget().validate(&json!({"spec": {"replicas": 1}}), None);
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
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.x"#,
        ),
        (
            json!({"type": "number", "format": "float"}),
            json!(1e39),
            r#"<nil>: Invalid value: "": Checked value must be of type number with format float in spec.x"#,
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
            json!({"type": "number", "multipleOf": 0.5}),
            json!(1),
            "spec.x: Invalid value: 0: factor MultipleOf declared for spec.x must be positive: 0",
        ),
        (json!({"type": "number", "multipleOf": 0.5}), json!(1.0), ""),
        (
            json!({"type": "integer", "multipleOf": 3}),
            json!(7.0),
            "spec.x: Invalid value: 7: spec.x in body should be a multiple of 3",
        ),
        (
            json!({"type": "integer"}),
            json!(9_007_199_254_740_992.0),
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
        ),
        (
            json!({"type": "boolean"}),
            json!(1.0),
            r#"spec.x: Invalid value: "number": spec.x in body must be of type boolean: "number""#,
        ),
        (json!({"type": "number", "enum": [1, 2.5]}), json!(1.5), ""),
        (
            json!({"type": "number", "enum": [1, 2.5]}),
            json!(2),
            r#"spec.x: Unsupported value: 2: supported values: "1", "2.5""#,
        ),
        (
            json!({"enum": ["A"], "x-kubernetes-preserve-unknown-fields": true}),
            json!(65),
            "",
        ),
        (
            json!({"enum": ["A"], "x-kubernetes-preserve-unknown-fields": true}),
            json!(65.0),
            r#"spec.x: Unsupported value: 65: supported values: "A""#,
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}),
            json!([5, 5.0, 0.0]),
            "",
        ),
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}),
            json!([0.0, 5.0, -0.0]),
            "spec.x[2]: Duplicate value: -0",
        ),
        (map_list(&["k"]), json!([{"k": 5}, {"k": 5.0}]), ""),
        (
            map_list(&["k"]),
            json!([{"k": 5.0}, {"k": 5.0}]),
            r#"spec.x[1]: Duplicate value: {"k":5}"#,
        ),
        (
            map_list(&["k", "l"]),
            json!([{"k": 5, "l": 1}, {"k": 5.0, "l": 1}]),
            r#"spec.x[1]: Duplicate value: {"k":5,"l":1}"#,
        ),
        (
            json!({"type": "string", "format": "date", "minLength": 1}),
            json!([[], 1]),
            "",
        ),
        (
            json!({"type": "string", "format": "unknown"}),
            json!([]),
            "spec.x: Invalid value: \"array\": spec.x in body must be of type string: \"array\"",
        ),
        (
            json!({"type": "number", "multipleOf": 0.01}),
            json!(0.07),
            "",
        ),
        (
            json!({"type": "number", "multipleOf": 0.01}),
            json!(4.35),
            "",
        ),
        (
            json!({"type": "number", "multipleOf": 0.01}),
            json!(0.005),
            "spec.x: Invalid value: 0.005: spec.x in body should be a multiple of 0.01",
        ),
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
            "spec.x: Too many: 2: must have at most 1 item",
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
            "spec.x: Too many: 2: must have at most 1 item",
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

/// Returns a list whose items have these members as keys.
fn map_list(keys: &[&str]) -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        "items": {"type": "object", "required": keys,
            "properties": {"k": {"type": "integer"}, "l": {"type": "integer"}}}})
}

#[test]
fn a_fraction_is_neither_of_the_type_nor_in_the_range_of_an_integer() {
    assert_eq!(
        said_of_x(json!({"type": "integer"}), json!(1.5)),
        [
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.x"#,
        ]
    );
}

#[test]
fn members_are_checked_beside_their_number() {
    let x = json!({"type": "object", "maxProperties": 1, "properties": {
        "a": {"type": "string", "enum": ["x"]}, "b": {"type": "string"}}, "required": ["c"]});
    assert_eq!(
        said_of_x(x, json!({"a": "y", "b": ""})),
        [
            "spec.x: Too many: 2: must have at most 1 item",
            r#"spec.x.a: Unsupported value: "y": supported values: "x""#,
            "spec.x.c: Required value",
        ]
    );
}

#[test]
fn the_closest_of_alternatives_is_that_which_looks_at_most() {
    let allowed = |values: Value| json!({"properties": {"q": {"enum": values}}});
    let fields = |kind: &str, alternatives: Value, value: Value| {
        let x =
            json!({"type": "object", "properties": {"q": {"type": "boolean"}}, kind: alternatives});
        let schema = json!({"type": "object", "properties": {"x": x}});
        let schema = StructuralSchema::read(&schema, false).unwrap();
        let errors = schema.validate(&json!({"x": value}), None).into_iter();
        errors.map(|it| it.field).collect::<Vec<_>>()
    };
    let value = json!({"q": true});
    let two = json!([{"required": ["p"]}, allowed(json!([false]))]);
    for kind in ["anyOf", "oneOf"] {
        assert_eq!(
            fields(kind, two.clone(), value.clone()),
            ["<nil>", "x.q"],
            "{kind}"
        );
        assert_eq!(fields(kind, two.clone(), json!({})), [""; 0], "{kind}");
    }
    // An alternative within counts with what it has found, even if it holds.
    let inner = json!({"anyOf": [allowed(json!([true]))], "required": ["p"]});
    let nested = json!([allowed(json!([false])), inner]);
    assert_eq!(fields("anyOf", nested, value), ["<nil>", "x.p"]);
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
fn numbers_are_compared_with_bounds_of_their_type() {
    let x = |more: Value| {
        let mut schema = json!({"type": "integer"});
        for (name, value) in more.as_object().into_iter().flatten() {
            schema[name] = value.clone();
        }
        schema
    };
    let cannot = |what: &str, format: &str| {
        format!(
            r#"<nil>: Invalid value: "": {what} value must be of type integer {format} in spec.x"#
        )
    };
    for (more, value, said) in [
        (
            json!({"minimum": 0.5}),
            0,
            vec![
                cannot("Minimum boundary", "(default format)"),
                "spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 0.5".to_owned(),
            ],
        ),
        (
            json!({"format": "int32", "maximum": 1e12}),
            1,
            vec![cannot("Maximum boundary", "with format int32")],
        ),
        (
            json!({"multipleOf": 0.5}),
            1,
            vec![cannot("MultipleOf", "(default format)")],
        ),
        (
            json!({"multipleOf": -1}),
            1,
            vec!["spec.x: Invalid value: -1: factor MultipleOf declared for spec.x must be positive: -1".to_owned()],
        ),
    ] {
        assert_eq!(said_of_x(x(more), json!(value)), said);
    }
}

#[test]
fn a_format_without_a_type_is_one_of_texts() {
    let x = json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]});
    assert_eq!(said_of_x(x.clone(), json!("::1")), [""; 0]);
    assert_eq!(
        said_of_x(x, json!(5)),
        [
            r#"spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer""#,
            r#"<nil>: Invalid value: "": "spec.x" must validate at least one schema (anyOf)"#,
            r#"spec.x: Invalid value: "int64": spec.x in body must be of type ipv4: "int64""#,
        ]
    );
}

#[test]
fn lengths_are_told_in_bytes() {
    for (max, said) in [
        (-1, "value is too long"),
        (0, "may not be more than 0 bytes"),
        (1, "may not be more than 1 byte"),
    ] {
        let x = json!({"type": "string", "maxLength": max});
        assert_eq!(
            said_of_x(x, json!("ab")),
            [format!("spec.x: Too long: {said}")]
        );
    }
}
