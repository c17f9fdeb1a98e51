//! The errors in rules when they are written.

use serde_json::{Map, json};

use super::rule_tests::{about_x, lines};
use super::*;

/// Returns the errors about the rules of `x`, if its schema replaces another one.
fn said_of_rules(x: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = about_x(x.clone());
    let of_old = old.map(|old| about_x(old.clone()));
    let spec = json!({"properties": {"x": x}});
    let said = json!({"properties": {"spec": spec}});
    let mut check = RuleCheck::beside(of_old.as_ref());
    let errors = check.errors("schema", schema, &said, old == Some(x));
    let below = |line: String| {
        let line = line.strip_prefix("schema").expect("an error of the schema");
        line.trim_start_matches('.').to_owned()
    };
    lines(&errors).into_iter().map(below).collect()
}

#[test]
fn rules_that_may_cost_too_much_are_refused() {
    let squares = |bounds: Value| {
        let mut x = json!({
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a == b))"}]
        });
        for (name, value) in bounds.as_object().into_iter().flatten() {
            x[name] = value.clone();
        }
        x
    };
    let advice = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";
    let at = "properties[spec].properties[x].x-kubernetes-validations[0].rule";
    let unbounded = squares(json!({}));
    assert_eq!(
        said_of_rules(&unbounded, None),
        [
            format!(
                "{at}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {advice}"
            ),
            format!(
                "{at}: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            ),
            format!(
                ": Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x {advice}"
            ),
        ]
    );
    // It was so before.
    let total = &said_of_rules(&unbounded, None)[1..];
    assert_eq!(said_of_rules(&unbounded, Some(&unbounded)), total);
    let bounded = squares(json!({"maxItems": 10, "items": {"type": "string", "maxLength": 10}}));
    assert_eq!(said_of_rules(&bounded, None), [""; 0]);
    assert_eq!(said_of_rules(&unbounded, Some(&bounded)).len(), 3);
    // A list around multiplies.
    let many = json!({"type": "array", "items": bounded, "maxItems": 1_000_000});
    assert_eq!(said_of_rules(&many, None).len(), 3);
    let few = json!({"type": "array", "items": bounded, "maxItems": 10});
    assert_eq!(said_of_rules(&few, None), [""; 0]);
}

#[test]
fn rules_see_the_types_of_their_schema() {
    let x = |schema: Value, rule: &str| {
        let mut schema = schema;
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        said_of_rules(&schema, None)
    };
    let object = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "a-b": {"type": "string", "maxLength": 5},
            "t": {"type": "string", "format": "date-time"},
            "p": {"x-kubernetes-int-or-string": true},
            "m": {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 5},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }
    });
    for rule in [
        "self.n > 0 && self.a__dash__b != '' && self.t > timestamp('2026-01-01T00:00:00Z')",
        "self.m.all(k, self.m[k]) && (type(self.p) == string || self.p > 0)",
        "self == oldSelf && has(self.any)",
    ] {
        assert_eq!(x(object.clone(), rule), [""; 0], "{rule}");
    }
    for (rule, why) in [
        ("self.z > 0", "undefined field 'z'"),
        ("self.any.z > 0", "undefined field 'z'"),
        (
            "self.n == 'a'",
            "found no matching overload for '_==_' applied to '(int, string)'",
        ),
        (
            "self.m['a'] > 1",
            "found no matching overload for '_>_' applied to '(bool, int)'",
        ),
        (
            "self.t == ''",
            "found no matching overload for '_==_' applied to '(timestamp, string)'",
        ),
    ] {
        let errors = x(object.clone(), rule);
        assert!(
            errors.len() == 1 && errors[0].contains(why),
            "{rule}: {errors:?}"
        );
    }
    // Rules that were there before are not checked again.
    let mut old = object.clone();
    old["x-kubernetes-validations"] = json!([{"rule": "self.z > 0"}]);
    let mut new = old.clone();
    new["x-kubernetes-validations"] = json!([{"rule": "self.z > 0"}, {"rule": "self.y > 0"}]);
    let errors = said_of_rules(&new, Some(&old));
    assert!(
        errors.len() == 1 && errors[0].contains("undefined field 'y'"),
        "{errors:?}"
    );
}

#[test]
fn sizes_pass_through_expressions() {
    let x = |mut schema: Value, rule: &str| {
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        said_of_rules(&schema, None)
    };
    let list = json!({
        "type": "object",
        "properties": {
            "a": {"type": "array", "maxItems": 256, "items": {"type": "string", "maxLength": 64}}
        }
    });
    let text = json!({"type": "string", "maxLength": 253});
    for (schema, rule) in [
        (
            &list,
            "!((has(self.a) ? self.a : []).exists(k, k.contains('/')))",
        ),
        (
            &list,
            "self.a.map(k, k.split(',')[0]).filter(k, k != '').all(k, k.matches('^[a-z]+$'))",
        ),
        (&text, "self.split('/', 2)[0].matches('^[a-z]+$')"),
        (
            &text,
            "self.replace('a', 'bb').split('/').map(k, k.trim()).all(k, k.matches('^[a-z]+$'))",
        ),
    ] {
        assert_eq!(x(schema.clone(), rule), [""; 0], "{rule}");
    }
}

#[test]
fn only_rules_that_cost_a_hundredth_of_the_limit_are_named() {
    let cheap = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]});
    let costly = json!({"type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a == b))"}]});
    let x = json!({"type": "object", "properties": {"a": cheap, "b": costly}});
    let named = said_of_rules(&x, None);
    let named = named.iter().filter(|it| it.contains("contributed"));
    assert_eq!(named.count(), 1);
}

#[test]
fn values_without_bound_are_as_many_as_fit_into_a_request() {
    // 3 MiB of two quotes and a comma.
    assert_eq!(declare::values_of_request(2), 1 << 20);
}

#[test]
fn places_in_a_rule_count_the_spaces_around_it() {
    let rule = json!({"rule": "  self + 1 "});
    let x = json!({"type": "string", "x-kubernetes-validations": [rule]});
    let said = said_of_rules(&x, None);
    assert!(said[0].contains("ERROR: <input>:1:8: "), "{said:?}");
    assert!(said[0].contains("\n |   self + 1 \n"), "{said:?}");
}

#[test]
fn a_rule_that_is_wrong_uses_no_older_value() {
    let rule = json!({"rule": "self > oldSelf.value()", "optionalOldSelf": false});
    let x = json!({"type": "integer", "x-kubernetes-validations": [rule]});
    let said = said_of_rules(&x, None);
    assert_eq!(said.len(), 2);
    let why =
        "optionalOldSelf: Invalid value: false: may not be set if oldSelf is not used in rule";
    assert!(said[1].ends_with(why), "{said:?}");
}

#[test]
fn defaults_break_no_rules() {
    let rule = |rule: &str| json!([{"rule": rule}]);
    let a = json!({"type": "integer", "x-kubernetes-validations": rule("self > 1")});
    let object =
        |default: i64| json!({"type": "object", "properties": {"a": a}, "default": {"a": default}});
    let at = "properties[spec].properties[x]";
    let said = format!("{at}.default.a: Invalid value: 1: failed rule: self > 1");
    assert_eq!(said_of_rules(&object(2), None), [""; 0]);
    assert_eq!(said_of_rules(&object(1), None), [said]);
    let map = json!({"type": "object", "additionalProperties": object(1), "maxProperties": 5});
    assert_eq!(said_of_rules(&map, None), [""; 0]);
    let optional = json!([{"rule": "oldSelf.hasValue()", "optionalOldSelf": true}]);
    let new = json!({"type": "integer", "default": 1, "x-kubernetes-validations": optional});
    let said = format!("{at}.default: Invalid value: 1: failed rule: oldSelf.hasValue()");
    assert_eq!(said_of_rules(&new, None), [said]);
}

#[test]
fn rules_of_all_defaults_share_a_budget() {
    let rule = "self.all(a, self.all(b, self.all(c, a == b || b == c || a == c || true)))";
    let list = json!({"type": "array", "items": {"type": "integer"}, "maxItems": 100,
        "default": vec![0; 100], "x-kubernetes-validations": [{"rule": rule}]});
    let lists: Map<String, Value> = (0..40).map(|it| (format!("l{it}"), list.clone())).collect();
    let said = said_of_rules(&json!({"type": "object", "properties": lists}), None);
    let ended = said.iter().filter(|it| it.contains("no further"));
    assert_eq!(ended.count(), 1, "{said:?}");
}

#[test]
fn rules_use_older_values_where_there_are_some() {
    let rules = json!([{"rule": "self == oldSelf "}]);
    let n = json!({"type": "integer", "x-kubernetes-validations": rules});
    let item = json!({"type": "object", "required": ["n"], "properties": {"n": n},
        "x-kubernetes-map-type": "granular"});
    let list = |kind: &str| json!({"type": "array", "items": item, "maxItems": 3, "x-kubernetes-list-type": kind});
    let mut keyed = list("map");
    keyed["x-kubernetes-list-map-keys"] = json!(["n"]);
    let mut whole = item.clone();
    whole["x-kubernetes-map-type"] = json!("atomic");
    let at = "properties[spec].properties[x]";
    let why = "oldSelf cannot be used on the uncorrelatable portion of the schema within schema";
    let rule = "n].x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf \"";
    for (x, expected) in [
        (keyed, None),
        (item.clone(), None),
        (
            list("atomic"),
            Some(format!("{at}.items.properties[{rule}: {why}.{at}")),
        ),
        (whole, None),
    ] {
        assert_eq!(said_of_rules(&x, None), Vec::from_iter(expected), "{x}");
    }
}

#[test]
fn inner_rules_are_told_before_outer_ones() {
    let rules = json!([{"rule": "self"}]);
    let inner = json!({"type": "integer", "x-kubernetes-validations": rules});
    let x =
        json!({"type": "object", "properties": {"a": inner}, "x-kubernetes-validations": rules});
    let said = said_of_rules(&x, None);
    assert_eq!(said.len(), 2);
    assert!(said[0].contains("properties[a]"), "{said:?}");
}

#[test]
fn each_rule_is_judged_for_itself() {
    let item = json!({"type": "string", "x-kubernetes-validations": [
        {"rule": "self == oldSelf", "messageExpression": "self +"}]});
    let x = json!({"type": "array", "maxItems": 9, "items": item, "x-kubernetes-validations": [
        {"rule": "self +"},
        {"rule": "size(self) > 0", "optionalOldSelf": true},
        {"rule": "oldSelf +", "messageExpression": "self +", "optionalOldSelf": true},
        {"rule": "size(self)"}]});
    let at = "properties[spec].properties[x].";
    let starts = [
        (
            "items.x-kubernetes-validations[0].messageExpression",
            "messageExpression compilation failed: ",
        ),
        (
            "items.x-kubernetes-validations[0].rule",
            "oldSelf cannot be used on the uncorrelatable portion",
        ),
        ("x-kubernetes-validations[0].rule", "compilation failed: "),
        (
            "x-kubernetes-validations[1].optionalOldSelf",
            "may not be set if oldSelf is not used in rule",
        ),
        ("x-kubernetes-validations[2].rule", "compilation failed: "),
        (
            "x-kubernetes-validations[2].optionalOldSelf",
            "may not be set if oldSelf is not used in rule",
        ),
        (
            "x-kubernetes-validations[3].rule",
            "cel expression must evaluate to a bool",
        ),
    ];
    // What does not compile is told also if it was there before.
    for (old, told) in [(None, &starts[..]), (Some(&x), &starts[..6])] {
        let said = said_of_rules(&x, old);
        assert_eq!(said.len(), told.len(), "{said:?}");
        for ((field, why), said) in told.iter().zip(&said) {
            let is_this = said.starts_with(&format!("{at}{field}: ")) && said.contains(why);
            assert!(is_this, "{field}: {said}");
        }
    }
}

#[test]
fn a_rule_that_does_not_compile_is_broken_by_each_object() {
    let x = json!({"type": "string", "default": "a", "x-kubernetes-validations": [{"rule": "self +"}, {"rule": "false"}]});
    let object = json!({"spec": {"x": "a"}});
    let said = lines(&about_x(x.clone()).validate_rules(&object, None));
    let start = "spec.x: Invalid value: \"string\": rule compile error: compilation failed: ERROR: <input>:1:";
    assert!(said.len() == 2 && said[0].starts_with(start), "{said:?}");
    let of_default = said_of_rules(&x, None);
    let start =
        "properties[spec].properties[x].default: Invalid value: \"string\": rule compile error: ";
    assert!(
        of_default.len() == 2 && of_default[0].starts_with(start),
        "{of_default:?}"
    );
}

#[test]
fn a_message_is_made_once_however_many_values_there_are() {
    let item = json!({"type": "string", "x-kubernetes-validations": [
        {"rule": "true", "messageExpression": "self + self"}]});
    let list = json!({"type": "array", "items": {"type": "array", "items": item}});
    assert_eq!(said_of_rules(&list, None), [""; 0]);
}

#[test]
fn objects_of_different_members_are_of_different_types() {
    let part =
        || json!({"type": "object", "properties": {"k": {"type": "string", "maxLength": 9}}});
    let said = |rule: &str| {
        let parts = json!({"type": "array", "maxItems": 9, "items": part()});
        said_of_rules(
            &json!({"type": "object", "properties": {"a": part(), "b-c": part(), "l": parts},
            "x-kubernetes-validations": [{"rule": rule}]}),
            None,
        )
    };
    for rule in [
        "self.a == oldSelf.a",
        "self.l == self.l.filter(x, true)",
        "self.a.k == self.l[0].k",
    ] {
        assert_eq!(said(rule), [""; 0], "{rule}");
    }
    for (rule, types) in [
        (
            "self.a == self.b__dash__c",
            "(selfType.spec.x.a, selfType.spec.x.b__dash__c)",
        ),
        (
            "self.a in self.l",
            "(selfType.spec.x.a, list(selfType.spec.x.l.@idx))",
        ),
        ("self == self.a", "(selfType.spec.x, selfType.spec.x.a)"),
    ] {
        let said = said(rule);
        let why = format!("' applied to '{types}'");
        assert!(said.len() == 1 && said[0].contains(&why), "{said:?}");
    }
}

#[test]
fn rules_about_values_without_a_type_are_refused() {
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    let rules = json!([{"rule": "true"}, {"rule": "true"}]);
    let mut ruled = any.clone();
    ruled["x-kubernetes-validations"] = rules.clone();
    let why = "x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
    for (x, place) in [
        (ruled.clone(), ""),
        (json!({"type": "array", "items": ruled}), "items."),
        (
            json!({"type": "array", "items": any, "x-kubernetes-validations": rules}),
            "",
        ),
        (
            json!({"type": "object", "additionalProperties": any, "x-kubernetes-validations": rules}),
            "",
        ),
    ] {
        let line = format!("properties[spec].properties[x].{place}{why}");
        assert_eq!(said_of_rules(&x, None), [line]);
    }
}

#[test]
fn rules_in_a_value_without_a_type_are_about_their_own_type() {
    let ruled = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'"}]});
    let untyped = |rules: Value| {
        json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": ruled},
            "x-kubernetes-validations": rules})
    };
    assert_eq!(said_of_rules(&untyped(json!([])), None), [""; 0]);
    let why = "x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
    let x = "properties[spec].properties[x]";
    assert_eq!(
        said_of_rules(&untyped(json!([{"rule": "true"}])), None),
        [format!("{x}.properties[a].{why}"), format!("{x}.{why}")]
    );
}
