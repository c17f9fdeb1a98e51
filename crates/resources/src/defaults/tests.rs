//! Tests of the engine of defaults, and of the table of all defaults.

mod on_read;
mod samples;
mod table;

use serde_json::json;

use super::DefaultRule::*;
use super::Literal::*;
use super::*;

#[test]
fn rules_fill_in_what_is_missing_and_nothing_else() {
    const RULES: &[DefaultRule] = &[
        Set("a.b", Int(1)),
        Set("kept", Text("x")),
        In("list[].inner", &[Set("c", Empty)]),
        When("kept", &["own"], &[Set("when", True)]),
        When("kept", &["x"], &[Set("never", True)]),
        With("list", &[Set("with", One("y"))]),
        With("nothing", &[Set("never", False)]),
        Run(&["ran"], |object| set(object, "ran", Null.value())),
        Zero("zero", Null),
    ];
    let mut object = json!({"kept": "own", "list": [{"inner": {}}, {"other": 1}, 7]});
    apply(RULES, &mut object);
    assert_eq!(
        object,
        json!({"a": {"b": 1}, "kept": "own", "when": true, "with": ["y"], "ran": null,
            "list": [{"inner": {"c": {}}}, {"other": 1}, 7]})
    );
    let mut zeros = json!({"list": []});
    apply_zeros(RULES, &mut zeros);
    assert_eq!(zeros, json!({"list": [], "zero": null}));
}

#[test]
fn what_has_no_value_vanishes() {
    let mut object = json!({"a": null, "b": [], "c": {"labels": {}, "emptyDir": {}},
        "d": [{"e": null}, null], "f": ""});
    remove_empty(&mut object);
    assert_eq!(
        object,
        json!({"c": {"emptyDir": {}}, "d": [{}, null], "f": ""})
    );
}

#[test]
fn what_drivers_of_devices_get_and_tell_keeps_what_is_empty() {
    let own = json!({"a": null, "b": [], "c": {"labels": {}}});
    let object = json!({
        "spec": {"devices": {"config": [{"opaque": {"driver": "d.example.com", "parameters": own}}]}},
        "status": {"devices": [
            {"driver": "d.example.com", "data": own},
            {"driver": "d.example.com", "data": {}},
        ]},
    });
    let mut kept = object.clone();
    remove_empty(&mut kept);
    assert_eq!(kept, object);
    let mut none = json!({"driver": "d.example.com", "parameters": null, "data": null});
    remove_empty(&mut none);
    assert_eq!(none, json!({"driver": "d.example.com"}));
}
