//! Rules about lists that are sets or have keys.

use serde_json::json;

use super::rule_tests::{about_x, lines};
use super::*;

/// Returns what is said about two lists of one type by a rule, in which they are `$a` and `$b`, and `l` is a list of
/// texts.
fn said(list: &Value, rule: &str, [a, b]: [Value; 2]) -> Vec<String> {
    let rule = rule.replace("$a", "self.x[0]").replace("$b", "self.x[1]");
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let x = json!({"type": "object", "properties": {"x": {"type": "array", "items": list}, "l": texts},
        "x-kubernetes-validations": [{"rule": rule, "message": "is broken"}]});
    let object = json!({"spec": {"x": {"x": [a, b], "l": ["b", "a"]}}});
    lines(&about_x(x).validate_rules(&object, None))
}

/// Asserts what rules about two lists come to: true, false or a failure.
fn assert_rules(list: &Value, [a, b]: [Value; 2], rules: &[(&str, Result<bool, &str>)]) {
    for (rule, expected) in rules {
        let errors = said(list, rule, [a.clone(), b.clone()]);
        let expected = match expected {
            Ok(true) => Vec::new(),
            Ok(false) => vec!["spec.x: Invalid value: is broken".to_owned()],
            Err(why) => vec![format!(
                "spec.x: Invalid value: \"object\": {why} evaluating rule: is broken"
            )],
        };
        assert_eq!(errors, expected, "{rule} of {a} and {b}");
    }
}

fn set(items: &Value) -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "set", "items": items})
}

#[test]
fn sets_are_equal_in_any_order_and_are_united() {
    let texts = set(&json!({"type": "string"}));
    let one_then_other = [json!(["a", "b"]), json!(["b", "a"])];
    assert_rules(
        &texts,
        one_then_other,
        &[
            ("$a == $b", Ok(true)),
            ("$a != $b", Ok(false)),
            ("$a == ['b', 'a']", Ok(true)),
            ("['b', 'a'] == $a", Ok(false)),
            ("$a == self.l", Ok(true)),
            ("self.l == $a", Ok(false)),
            ("$a == ['a', 'a']", Ok(true)),
            ("$a == ['a']", Ok(false)),
            ("$a + ['c'] == ['c', 'b', 'a']", Ok(true)),
            ("($a + $b + ['z', 'a'])[2] == 'z'", Ok(true)),
            ("($a + $b + ['z', 'a']).size() == 3", Ok(true)),
            ("self.l + $a == ['b', 'a', 'a', 'b']", Ok(true)),
            ("[] + $a == ['b', 'a']", Ok(true)),
            ("$a.map(x, x) == ['b', 'a']", Ok(false)),
            ("$a in [['b', 'a']]", Ok(true)),
            ("$b in self.x.map(x, x)", Ok(true)),
            ("[$a] == [$b]", Ok(true)),
            ("optional.of($a) == optional.of($b)", Ok(true)),
            ("dyn($a) == $b", Ok(true)),
            ("type($a) == list", Ok(true)),
            ("$a.first().value() + $a.join('') == 'aab'", Ok(true)),
            (
                "'%s'.format([self.x]) == '[[\"a\", \"b\"], [\"b\", \"a\"]]'",
                Ok(true),
            ),
            ("self.x.flatten().size() == 4", Ok(true)),
            ("optional.ofNonZeroValue($a).hasValue()", Ok(true)),
        ],
    );
}

#[test]
fn items_of_sets_are_looked_up_as_go_does() {
    let of = |items: Value, a: Value, b: Value, rules: &[(&str, Result<bool, &str>)]| {
        assert_rules(&set(&items), [a, b], rules);
    };
    let number = json!({"type": "number"});
    let same = ("$a == $b", Ok(true));
    let itself = |is_equal| ("$a == $a", Ok(is_equal));
    of(
        number.clone(),
        json!([1.5, 2.5]),
        json!([2.5, 1.5]),
        &[same],
    );
    // On the left it is an integer, on the right a double.
    of(number, json!([1, 2.5]), json!([]), &[itself(false)]);
    of(
        json!({"type": "integer"}),
        json!([1, 2]),
        json!([2, 1]),
        &[same],
    );
    let either = json!({"x-kubernetes-int-or-string": true});
    of(
        either,
        json!([1, "1"]),
        json!(["1", 1]),
        &[same, itself(true)],
    );
    let time = json!({"type": "string", "format": "date-time"});
    let why = "invalid data, expected string, got time.Time";
    let sum = ("($a + $a).all(x, x in $a)", Err(why));
    of(
        time,
        json!(["2020-01-01T00:00:00Z"]),
        json!([]),
        &[itself(false), sum],
    );
    let atomic = json!({"type": "array", "items": {"type": "string"}});
    let why = "internal error: runtime error: hash of unhashable type []interface {}";
    let lists = [
        ("$a == $a || true", Err(why)),
        ("true || $a == $a", Ok(true)),
        ("$a != $a", Err(why)),
        ("$a == $b", Ok(false)),
    ];
    of(atomic, json!([["x"]]), json!([]), &lists);
}

#[test]
fn lists_with_keys_are_equal_in_any_order_and_are_merged_by_their_keys() {
    let list = |key: &str| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
            "items": {"type": "object", "required": [key], "properties":
                {key: {"type": "string"}, "v": set(&json!({"type": "string"}))}}})
    };
    let item = |key: &str, name: &str, v: Value| json!({key: name, "v": v});
    let (a, b) = (item("k", "a", json!(["x", "y"])), item("k", "b", json!([])));
    let other = item("k", "a", json!(["y", "x"]));
    assert_rules(
        &list("k"),
        [json!([a, b]), json!([b, other])],
        &[
            ("$a == $b", Ok(true)),
            ("$a == $a.map(x, x)", Ok(true)),
            ("$a.map(x, x) == $b", Ok(false)),
            ("$a + $b == $b", Ok(true)),
            ("($a + $b)[0].v.join('') == 'yx'", Ok(true)),
            ("($a + $b).map(x, x.k) == ['a', 'b']", Ok(true)),
            ("($b + $a).map(x, x.k) == ['b', 'a']", Ok(true)),
            ("$b.filter(x, x.k == 'a') + $a == $a", Ok(false)),
        ],
    );
    let without = item("k", "a", json!(["x"]));
    assert_rules(
        &list("k"),
        [json!([a, b]), json!([b, without])],
        &[("$a == $b", Ok(false)), ("$a + $b == $b", Ok(true))],
    );
    // No item has a member of the name that an expression has for the key.
    let (a, b) = (item("x-k", "a", json!([])), item("x-k", "b", json!([])));
    assert_rules(
        &list("x-k"),
        [json!([a, b]), json!([a])],
        &[
            ("$a == $a", Ok(false)),
            ("$b == $b", Ok(true)),
            ("($a + $b).map(x, x.x__dash__k) == ['a', 'a']", Ok(true)),
        ],
    );
}

#[test]
fn older_sets_are_sets() {
    let set = |rule: &str| {
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": rule}]})
    };
    let object = |x: Value| json!({"spec": {"x": x}});
    let (old, new) = (object(json!(["a", "b"])), object(json!(["b", "a"])));
    for rule in [
        "self == oldSelf",
        "oldSelf == self",
        "self + oldSelf == oldSelf",
    ] {
        let errors = about_x(set(rule)).validate_rules(&new, Some(&old));
        assert_eq!(lines(&errors), [""; 0], "{rule}");
    }
}

#[test]
fn times_that_are_added_to_a_list_of_times_cannot_be_read() {
    let times = json!({"type": "array", "items": {"type": "string", "format": "date-time"}});
    let lists = ["2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"].map(|it| json!([it]));
    let why = "invalid data, expected string, got time.Time";
    assert_rules(
        &times,
        lists,
        &[
            ("$a == $a && $a != $b", Ok(true)),
            ("($a + $b).size() == 2", Ok(true)),
            ("($a + $b)[1] == $b[0]", Err(why)),
            ("($a.map(x, x) + $b)[1] == $b[0]", Ok(true)),
        ],
    );
}
