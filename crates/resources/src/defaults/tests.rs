//! Tests of the engine of defaults, and of the table of all defaults.

mod on_read;
mod samples;
mod table;

use ringwatch_registry::store::to_storage_version;
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
    let mut object = json!({"a": null, "b": [], "c": {"nodeSelector": {}, "emptyDir": {}},
        "d": [{"e": null}, null], "f": ""});
    remove_empty(&mut object);
    assert_eq!(
        object,
        json!({"c": {"nodeSelector": {}, "emptyDir": {}}, "d": [{}, null], "f": ""})
    );
}

/// Returns an object of a built-in kind as its strategy is given it, with defaults.
fn incoming(plural: &str, object: Value) -> Value {
    let resources = crate::built_in();
    let resource = resources.iter().find(|it| it.plural == plural);
    let resource = resource.expect("a built-in resource");
    let mut object = to_storage_version(resource, object).expect("an object");
    resource.strategy.default(&mut object);
    object
}

#[test]
fn an_empty_selector_of_nodes_is_one() {
    for selector in [json!({}), json!({"nodeSelectorTerms": []})] {
        let slice = incoming(
            "resourceslices",
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
                "spec": {"driver": "d", "nodeSelector": selector}}),
        );
        assert_eq!(slice["spec"]["nodeSelector"], selector);
    }
    let class = incoming(
        "ingressclasses",
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "c"},
            "spec": {"parameters": {"name": ""}}}),
    );
    assert!(class["spec"]["parameters"].is_object(), "{class}");
    let storage = incoming(
        "storageclasses",
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"},
            "parameters": {}}),
    );
    assert!(storage["parameters"].is_null(), "{storage}");
}

#[test]
fn a_zero_time_of_deletion_stays_until_updates_are_validated() {
    for (sent, kept) in [
        (json!("0001-01-01T00:00:00Z"), json!("0001-01-01T00:00:00Z")),
        (
            json!("0001-01-01T01:00:00+01:00"),
            json!("0001-01-01T00:00:00Z"),
        ),
        (json!(null), json!(null)),
    ] {
        let map = incoming(
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "deletionTimestamp": sent,
                "creationTimestamp": sent}}),
        );
        assert_eq!(map["metadata"]["deletionTimestamp"], kept);
        assert!(map["metadata"]["creationTimestamp"].is_null());
    }
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
