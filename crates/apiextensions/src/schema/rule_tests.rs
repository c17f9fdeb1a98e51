//! Rules as users write them, and what is said when they do not hold.

use ringwatch_apimachinery::Error;
use serde_json::json;

use super::rules::RULES_MAX;
use super::tests::widget;
use super::*;

/// Returns a schema of an object whose `spec` has a member `x`.
pub(super) fn about_x(x: Value) -> StructuralSchema {
    let spec = json!({"type": "object", "properties": {"x": x}});
    let whole = json!({"type": "object", "properties": {"spec": spec}});
    StructuralSchema::read(&whole, false).unwrap()
}

pub(super) fn lines(errors: &[FieldError]) -> Vec<String> {
    let line = |error: &FieldError| format!("{}: {}", error.field, error.message());
    errors.iter().map(line).collect()
}

fn said(x: Value, value: Value, old: Option<Value>) -> Vec<String> {
    let object = json!({"spec": {"x": value}});
    let old = old.map(|old| json!({"spec": {"x": old}}));
    lines(&about_x(x).check(&object, old.as_ref(), Vec::new(), no_errors))
}

/// Finds nothing in metadata.
fn no_errors(_: &Value) -> Vec<FieldError> {
    Vec::new()
}

#[test]
fn a_float_is_no_integer_for_rules() {
    let list = |rule: &str| {
        json!({"type": "array", "items": {"type": "integer"}, "maxItems": 9,
            "x-kubernetes-validations": [{"rule": rule}]})
    };
    let object = |rule: &str| {
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule, "messageExpression": "self.a > 3 ? 'x' : 'y'"}]})
    };
    let int = "invalid data, expected int, got float64";
    for (rule, fails) in [
        ("has(self.a)", true),
        ("self.a > 0 || self.b > 0", false),
        ("self.b > 0 || self.a > 0", false),
        ("self.b == self.b", false),
        ("self == self", true),
        ("dyn(self.a) == 5", true),
        ("self.?a.hasValue()", true),
        ("type(self.a) == int", true),
        ("[1].all(x, x > 0 || self.a > 0)", false),
    ] {
        let expected = match fails {
            true => vec![format!(
                "spec.x: Invalid value: \"object\": {int} evaluating rule: {rule}"
            )],
            false => Vec::new(),
        };
        let value = json!({"a": 5.0, "b": 1});
        assert_eq!(said(object(rule), value, None), expected, "{rule}");
    }
    // Nor has it a message that is made of it.
    assert_eq!(
        said(object("self.b > 1"), json!({"a": 5.0, "b": 1}), None),
        ["spec.x: Invalid value: failed rule: self.b > 1"]
    );
    for (rule, fails) in [
        ("size(self) == 2", false),
        ("1 in self", false),
        ("5 in self", true),
        ("self[0] == 1", false),
        ("self[1] == 5", true),
        ("self.exists(x, x == 1)", false),
        ("self.all(x, x > 0)", true),
        ("self == [2, 5]", false),
        ("self == [1, 5]", true),
        ("[1, 5] == self", false),
        ("self != [1, 5]", false),
        ("self.sum() == 6", true),
        ("self.isSorted()", true),
        ("sets.contains(self, [1])", false),
        ("self.indexOf(5) == -1", false),
    ] {
        let errors = said(list(rule), json!([1, 5.0]), None);
        let told = format!("spec.x: Invalid value: \"array\": {int} evaluating rule: {rule}");
        assert_eq!(errors.contains(&told), fails, "{rule}: {errors:?}");
    }
    let int_or_string = json!({"x-kubernetes-int-or-string": true,
        "x-kubernetes-validations": [{"rule": "self != 'a'"}]});
    assert_eq!(
        said(int_or_string, json!(5.0), None),
        [
            "spec.x: Invalid value: \"\": invalid data, expected XIntOrString value to be either a string or integer evaluating rule: self != 'a'"
        ]
    );
    let number =
        json!({"type": "number", "x-kubernetes-validations": [{"rule": "self + 0.5 == 5.5"}]});
    assert_eq!(said(number, json!(5.0), None), [""; 0]);
}

#[test]
fn rules_compare_data_without_a_schema_by_the_form_of_its_numbers() {
    let x = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"a": {"type": "number"}},
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "m"}]});
    for (value, same) in [
        (json!({"a": 1.0, "z": [5, 0.5]}), true),
        (json!({"a": 1, "z": [5.0, 0.5]}), false),
        (json!({"a": 1, "z": [5, 0.25]}), false),
    ] {
        let old = json!({"a": 1, "z": [5, 0.5]});
        let is_same = said(x.clone(), value.clone(), Some(old)).is_empty();
        assert_eq!(is_same, same, "{value}");
    }
}

#[test]
fn what_others_find_is_told_between_and_may_make_rules_pointless() {
    let status =
        json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}});
    let rule = json!({"rule": "self.name != 'a'"});
    let whole = json!({"type": "object", "x-kubernetes-validations": [rule],
        "properties": {"name": {"type": "string"}, "status": status,
            "spec": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}}});
    let schema = StructuralSchema::read(&whole, false).unwrap();
    let of_scale = |name: &str| FieldError::invalid(name, &json!(0), "scale");
    let scale = || vec![of_scale(".spec")];
    let required: CheckMetadata = |_| vec![FieldError::required("metadata.name")];
    let fields = |errors: Vec<FieldError>| -> Vec<String> {
        errors.into_iter().map(|it| it.field).collect()
    };
    let twice = json!({"name": "b", "spec": [1, 1], "status": {"x": 1}});
    let all = schema.check(&twice, None, scale(), no_errors);
    assert_eq!(fields(all), ["status.x", ".spec", "spec[1]", "<nil>"]);
    let named = json!({"name": "a"});
    let all = schema.check(&named, None, scale(), required);
    assert_eq!(fields(all), [".spec", "<nil>"]);
    let all = schema.check(&named, None, scale(), no_errors);
    assert_eq!(
        lines(&all[1..]),
        ["<nil>: Invalid value: failed rule: self.name != 'a'"]
    );

    // Of a status, texts tell the path from there, and the rest of the schema is left alone.
    let old = json!({"name": 5, "status": {"x": "1"}});
    let wrong = json!({"name": 5, "status": {"x": 1}});
    let of_status = lines(&schema.check_status(&wrong, &old, Vec::new(), no_errors));
    assert_eq!(
        of_status[0],
        "status.x: Invalid value: \"integer\": x in body must be of type string: \"integer\""
    );
    assert_eq!(of_status.len(), 2, "{of_status:?}");
    let empty = json!({"name": 5, "status": {}});
    let of_status = schema.check_status(&empty, &old, scale(), no_errors);
    assert_eq!(fields(of_status), ["status.x", ".spec", "<nil>"]);
}

fn integer(rule: Value) -> Value {
    json!({"type": "integer", "x-kubernetes-validations": [rule]})
}

fn refused(rule: Value) -> Vec<String> {
    let whole = json!({"type": "object", "properties": {"x": integer(rule)}});
    match StructuralSchema::read(&whole, false) {
        Ok(schema) => lines(&RuleCheck::beside([]).errors("", schema, &whole, false)),
        Err(errors) => lines(&errors),
    }
}

fn message(object: &Value) -> String {
    let error = Error::Invalid {
        kind: "Widget.peers.example.com".to_owned(),
        name: "w".to_owned(),
        errors: widget().check(object, None, Vec::new(), no_errors),
    };
    error.to_string()
}

#[test]
fn a_broken_rule_is_told_without_the_object() {
    assert_eq!(
        message(&json!({"spec": {"color": "red", "replicas": 11}})),
        r#"Widget.peers.example.com "w" is invalid: spec: Invalid value: too many replicas"#
    );
    assert!(
        widget()
            .check(
                &json!({"spec": {"color": "red", "replicas": 10}}),
                None,
                Vec::new(),
                no_errors
            )
            .is_empty()
    );
}

#[test]
fn rules_are_not_run_on_what_they_would_stumble_over() {
    let unchecked = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    assert_eq!(
        message(&json!({"spec": {"color": "pink", "note": "too long note", "replicas": 1}})),
        format!(
            r#"Widget.peers.example.com "w" is invalid: [spec.color: Unsupported value: "pink": supported values: "red", "green", "blue", spec.note: Too long: may not be more than 8 bytes, {unchecked}]"#
        )
    );
    assert_eq!(
        message(&json!({"spec": {"replicas": 1}})),
        format!(
            r#"Widget.peers.example.com "w" is invalid: [spec.color: Required value, {unchecked}]"#
        )
    );
    // Other errors do not stand in the way.
    assert_eq!(
        lines(&widget().check(
            &json!({"spec": {"color": "red", "replicas": -1}}),
            None,
            Vec::new(),
            no_errors
        )),
        [
            "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0"
        ]
    );
}

#[test]
fn a_rule_says_what_its_author_wants() {
    for (rule, line) in [
        (
            json!({"rule": "self > 5"}),
            "spec.x: Invalid value: 1: failed rule: self > 5",
        ),
        (
            json!({"rule": "self > 5", "message": " too small "}),
            "spec.x: Invalid value: 1: too small",
        ),
        (
            json!({"rule": "self > 5", "messageExpression": "'is ' + string(self)"}),
            "spec.x: Invalid value: 1: is 1",
        ),
        (
            json!({"rule": "self > 5", "message": "m", "messageExpression": "'a\\nb'"}),
            "spec.x: Invalid value: 1: m",
        ),
        (
            json!({"rule": "self > 5", "message": "m", "messageExpression": "string(1/0)"}),
            "spec.x: Invalid value: 1: m",
        ),
        (
            json!({"rule": "self > 5", "message": "m", "reason": "FieldValueForbidden"}),
            "spec.x: Forbidden: m",
        ),
        (
            json!({"rule": "self > 5", "message": "m", "reason": "FieldValueRequired"}),
            "spec.x: Required value: m",
        ),
        (
            json!({"rule": "self > 5", "message": "m", "reason": "FieldValueDuplicate"}),
            "spec.x: Duplicate value: 1",
        ),
        (
            json!({"rule": "1 / 0 > self"}),
            r#"spec.x: Invalid value: "integer": division by zero evaluating rule: 1 / 0 > self"#,
        ),
    ] {
        assert_eq!(
            said(integer(rule.clone()), json!(1), None),
            [line],
            "{rule}"
        );
    }
    let pair = json!({
        "type": "object",
        "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.low < self.high", "message": "m", "fieldPath": ".high"}]
    });
    assert_eq!(
        said(pair.clone(), json!({"low": 2, "high": 1}), None),
        ["spec.x.high: Invalid value: m"]
    );
    assert_eq!(
        said(pair, json!({"low": 2}), None),
        [r#"spec.x: Invalid value: "object": no such key: high evaluating rule: m"#]
    );
}

#[test]
fn rules_see_values_as_the_schema_types_them() {
    let x = json!({
        "type": "object",
        "additionalProperties": {"type": "integer"},
    });
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let text = |format: &str| json!({"type": "string", "format": format});
    for (schema, value, rule) in [
        (
            x,
            json!({"a-b": 1, "in": 2}),
            "self['a-b'] == 1 && self['in'] == 2 && self.size() == 2",
        ),
        (
            object(
                json!({"a-b": {"type": "integer"}, "my_field": {"type": "integer"}, "namespace": {"type": "string"}}),
            ),
            json!({"a-b": 1, "my_field": 2, "namespace": "n"}),
            "self.a__dash__b == 1 && self.my_field == 2 && self.__namespace__ == 'n'",
        ),
        (
            object(json!({"n": {"type": "number"}})),
            json!({"n": 1}),
            "self.n == 1.0 && self.n / 2.0 == 0.5",
        ),
        (
            object(json!({"n": {"type": "integer"}})),
            json!({"n": 3}),
            "self.n / 2 == 1",
        ),
        (
            object(
                json!({"t": text("date-time"), "d": text("duration"), "day": text("date"), "b": text("byte")}),
            ),
            json!({"t": "2026-02-28T12:00:00Z", "d": "90m", "day": "2026-02-28", "b": "aGk="}),
            "self.t > timestamp('2026-01-01T00:00:00Z') && self.d == duration('1h30m') && self.day < self.t && self.b == b'hi'",
        ),
        (
            object(json!({"p": {"x-kubernetes-int-or-string": true}})),
            json!({"p": "50%"}),
            "type(self.p) == string ? self.p.endsWith('%') : self.p > 0",
        ),
        (
            object(json!({"a": {"type": "string"}})),
            json!({}),
            "!has(self.a)",
        ),
        (
            object(json!({"l": {"type": "array", "items": {"type": "integer"}}})),
            json!({"l": [3, 1, 2]}),
            "self.l.all(i, i > 0) && self.l.exists_one(i, i == 2) && self.l.sum() == 6 && !self.l.isSorted()",
        ),
        (
            object(json!({"s": {"type": "string"}})),
            json!({"s": "10.0.0.1"}),
            "isIP(self.s) && self.s.matches('^[0-9.]+$') && self.s.split('.').size() == 4 && quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        ),
    ] {
        let mut schema = schema;
        schema["x-kubernetes-validations"] = json!([{"rule": rule, "message": "m"}]);
        assert_eq!(said(schema, value, None), [""; 0], "{rule}");
    }
}

#[test]
fn rules_that_compare_run_where_there_is_an_older_value() {
    let immutable = integer(json!({"rule": "self == oldSelf", "message": "immutable"}));
    assert_eq!(said(immutable.clone(), json!(1), None), [""; 0]);
    assert_eq!(said(immutable.clone(), json!(1), Some(json!(1))), [""; 0]);
    assert_eq!(
        said(immutable.clone(), json!(2), Some(json!(1))),
        ["spec.x: Invalid value: 2: immutable"]
    );
    let optional = integer(json!({
        "rule": "oldSelf.hasValue() ? self > oldSelf.value() : self == 1", "message": "m", "optionalOldSelf": true
    }));
    assert_eq!(said(optional.clone(), json!(1), None), [""; 0]);
    assert_eq!(
        said(optional.clone(), json!(2), None),
        ["spec.x: Invalid value: 2: m"]
    );
    assert_eq!(said(optional.clone(), json!(2), Some(json!(1))), [""; 0]);
    assert_eq!(
        said(optional, json!(1), Some(json!(1))),
        ["spec.x: Invalid value: 1: m"]
    );

    let list = |kind: &str, keys: Value| {
        json!({
            "type": "array",
            "x-kubernetes-list-type": kind,
            "x-kubernetes-list-map-keys": keys,
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "n": immutable.clone()}
            }
        })
    };
    let new = json!([{"name": "b", "n": 2}, {"name": "a", "n": 3}]);
    let old = json!([{"name": "a", "n": 1}, {"name": "b", "n": 2}]);
    assert_eq!(
        said(list("map", json!(["name"])), new.clone(), Some(old.clone())),
        ["spec.x[1].n: Invalid value: 3: immutable"]
    );
    assert_eq!(said(list("atomic", json!([])), new, Some(old)), [""; 0]);
}

#[test]
fn what_has_not_changed_need_not_fulfil_new_rules() {
    let small = integer(json!({"rule": "self < 5", "message": "m"}));
    assert_eq!(said(small.clone(), json!(9), Some(json!(9))), [""; 0]);
    assert_eq!(
        said(small.clone(), json!(8), Some(json!(9))),
        ["spec.x: Invalid value: 8: m"]
    );
    let map = json!({"type": "object", "additionalProperties": small});
    assert_eq!(
        said(map, json!({"a": 9, "b": 7}), Some(json!({"a": 9, "b": 6}))),
        ["spec.x[b]: Invalid value: 7: m"]
    );
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn rules_that_cannot_be_run_are_refused() {
    let at = "properties[x].x-kubernetes-validations[0]";
    for (rule, line) in [
        (json!({}), "rule: Required value: rule is not specified"),
        (
            json!({"rule": "self == b"}),
            "rule: Invalid value: {RULE}: compilation failed: ERROR: <input>:1:9: undeclared reference to 'b' (in container '')\n | self == b\n | ........^",
        ),
        (
            json!({"rule": "self > 0", "messageExpression": "object.x"}),
            "messageExpression: Invalid value: {RULE}: messageExpression compilation failed: ERROR: <input>:1:1: undeclared reference to 'object' (in container '')\n | object.x\n | ^",
        ),
        (
            json!({"rule": "self + 1"}),
            r#"rule: Invalid value: {RULE}: cel expression must evaluate to a bool"#,
        ),
        (
            json!({"rule": "self > 0", "messageExpression": "self"}),
            r#"messageExpression: Invalid value: {RULE}: messageExpression must evaluate to a string"#,
        ),
        (
            json!({"rule": "self > 0", "message": "a\nb"}),
            r#"message: Invalid value: "a\nb": must not contain line breaks"#,
        ),
        (
            json!({"rule": "self\n> 0"}),
            "message: Required value: message must be specified if rule contains line breaks",
        ),
        (
            json!({"rule": "self > 0", "optionalOldSelf": false}),
            "optionalOldSelf: Invalid value: false: may not be set if oldSelf is not used in rule",
        ),
        (
            json!({"rule": "self > 0", "reason": "Because"}),
            r#"reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired""#,
        ),
        (
            json!({"rule": "self > 0", "fieldPath": ".a"}),
            r#"fieldPath: Invalid value: ".a": must be a valid path"#,
        ),
        (
            json!({"rule": "range(1000000000).size() > 0"}),
            "rule: Invalid value: {RULE}: compilation failed: ERROR: <input>:1:6: undeclared reference to 'range' (in container '')\n | range(1000000000).size() > 0\n | .....^",
        ),
    ] {
        let shown = rules::shown(rule.as_object().expect("a rule"));
        let line = line.replace("{RULE}", &shown);
        assert_eq!(refused(rule), [format!("{at}.{line}")]);
    }
    let syntax = refused(json!({"rule": "self >"}));
    let shown = r#"{"Rule":"self \u003e","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}"#;
    let start = format!("{at}.rule: Invalid value: {shown}: compilation failed: ");
    assert!(
        syntax.len() == 1 && syntax[0].starts_with(&start),
        "{syntax:?}"
    );
}

#[test]
fn hostile_rules_are_refused_or_bounded() {
    for rule in [
        format!("{}1 > 0", "1 + ".repeat(5_000)),
        format!("{}1{} > 0", "(".repeat(400), ")".repeat(400)),
        format!("'{}' == ''", "a".repeat(100_000)),
        format!("self{} > 0", "[0]".repeat(5_400)),
        format!("{}true{}", "[1,2].all(a, ".repeat(120), ")".repeat(120)),
    ] {
        let said = refused(json!({"rule": rule}));
        assert!(
            said.len() == 1 && said[0].contains("compilation failed"),
            "{said:?}"
        );
    }
    // As long as it may be: the stack suffices to read, to run and to forget it.
    for rule in [
        format!("{}1 > 0", "1 + ".repeat(248)),
        format!("{}1{} > 0", "(".repeat(80), ")".repeat(80)),
        format!(
            "{}[1]{} == 1",
            "[".repeat(80),
            "]".repeat(80) + &"[0]".repeat(81)
        ),
        format!("{}true", "self > 0 || ".repeat(8_000)),
        format!("'{}' != ''", "([{".repeat(33_000)),
    ] {
        assert_eq!(
            said(integer(json!({"rule": rule})), json!(1), None),
            [""; 0]
        );
    }
    let many: Vec<Value> = (0..=RULES_MAX)
        .map(|_| json!({"rule": "self > 0"}))
        .collect();
    let whole = json!({"type": "object", "properties": {"x": {"type": "integer", "x-kubernetes-validations": many}}});
    assert!(StructuralSchema::read(&whole, false).is_err());
    let long = format!("'{}' != ''", "a".repeat(16_000));
    let rules = |count| {
        let rules = vec![json!({"rule": "true", "messageExpression": long}); count];
        json!({"type": "object", "x-kubernetes-validations": rules})
    };
    assert!(StructuralSchema::read(&rules(65), false).is_ok());
    let errors = StructuralSchema::read(&rules(66), false).unwrap_err();
    assert_eq!(
        lines(&errors),
        [
            "x-kubernetes-validations[65]: Invalid value: \"\": must not have more than 1000 rules of 1048576 bytes together"
        ]
    );
}

#[test]
fn rules_stop_when_their_budget_is_used_up() {
    let out = |rule: &str| {
        format!(
            r#"spec.x: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {rule}"#
        )
    };
    let loops = |rule: &str| {
        json!({
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": rule}, {"rule": "false"}]
        })
    };
    let long = json!(vec!["a"; 2_000]);
    let cubic = "self.all(a, self.all(b, self.all(c, a == b && b == c)))";
    assert_eq!(said(loops(cubic), long, None), [out(cubic)]);
    assert_eq!(
        said(loops(cubic), json!(["a", "a"]), None),
        ["spec.x: Invalid value: failed rule: false"]
    );
    let grows = "self[0].replace('a', self[0]).replace('a', self[0]).size() > 0";
    assert_eq!(
        said(loops(grows), json!(["a".repeat(10_000)]), None),
        [out(grows)]
    );
    let square = "self.all(a, self.all(b, a == b))";
    let nested = json!({"type": "array", "items": loops(square)});
    let lists = json!(vec![vec!["a"; 400]; 50]);
    let errors = said(nested, lists, None);
    assert!(
        errors.last().is_some_and(|it| it.ends_with(r#"Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run"#)),
        "{errors:?}"
    );
}

#[test]
fn rules_stop_when_a_message_costs_too_much() {
    let cubic = "self.all(a, self.all(b, self.all(c, a == b))) ? 'a' : \"b\"";
    let square = "self.all(a, self.all(b, a == b)) ? 'a' : 'b'";
    let list = |message: &str| {
        json!({
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-validations": [
                {"rule": "size(self) == 0", "message": "m", "messageExpression": message}, {"rule": "false"}
            ]
        })
    };
    let stops = "no further validation rules will be run";
    assert_eq!(
        said(list(cubic), json!(vec!["a"; 2_000]), None),
        [format!(
            r#"spec.x: Invalid value: "array": {stops} due to call cost exceeds limit for messageExpression: {}"#,
            json!(cubic)
        )]
    );
    let lists = json!(vec![vec!["a"; 400]; 50]);
    let errors = said(json!({"type": "array", "items": list(square)}), lists, None);
    let why = format!(
        r#"Invalid value: "array": messageExpression evaluation failed due to running out of cost budget, {stops}"#
    );
    assert!(
        errors.last().is_some_and(|it| it.ends_with(&why)),
        "{errors:?}"
    );
    let x = json!({
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "false", "fieldPath": ".l", "messageExpression":
            "self.l.all(a, self.l.all(b, self.l.all(c, a == b))) ? 'a' : 'b'"}]
    });
    let said = said(x, json!({"l": vec!["a"; 2_000]}), None);
    assert!(
        said.len() == 1 && said[0].starts_with("spec.x.l: Invalid value: \"object\": no further"),
        "{said:?}"
    );
}

#[test]
fn a_number_may_not_be_written_with_millions_of_digits() {
    let x = json!({
        "type": "string",
        "x-kubernetes-validations": [{"rule": "self.format([1.0]) != ''"}]
    });
    assert_eq!(said(x.clone(), json!("%.2f"), None), [""; 0]);
    let said = said(x, json!("%.99999999f"), None);
    assert!(
        said.len() == 1 && said[0].contains("actual cost limit exceeded"),
        "{said:?}"
    );
}
