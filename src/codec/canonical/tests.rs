//! Tests of the form that Go's types give objects.

use proptest::prelude::*;
use ringwatch_testing::recorded;
use serde_json::json;

use super::*;
use crate::codec::{decode, encode_value, kind};

fn canonicalized(mut object: Value) -> Value {
    let found = kind(
        object["apiVersion"].as_str().expect("a version"),
        object["kind"].as_str().expect("a kind"),
    );
    let members = object.as_object_mut().expect("an object");
    canonicalize(found.expect("a built-in kind"), members);
    object
}

fn completed(mut object: Value) -> Value {
    let version = object["apiVersion"].as_str().expect("a version").to_owned();
    let name = object["kind"].as_str().expect("a kind").to_owned();
    let members = object.as_object_mut().expect("an object");
    complete(kind(&version, &name).expect("a built-in kind"), members);
    object
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, member| {
            without_nulls(member);
            !member.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[test]
fn zeros_vanish_where_go_leaves_them_out() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {}},
        "spec": {"hostNetwork": false, "nodeSelector": {}, "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0, "securityContext": {},
            "containers": [{"name": "", "image": "", "tty": false, "args": [],
                "env": [{"name": "EMPTY", "value": ""}],
                "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}]}});
    assert_eq!(
        canonicalized(pod),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0, "securityContext": {},
                "containers": [{"env": [{"name": "EMPTY"}],
                    "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}]}})
    );
}

#[test]
fn zeros_vanish_where_go_writes_them_too() {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "b"}, "roleRef": {"apiGroup": "", "kind": "Role", "name": "r"}});
    let canonicalized = canonicalized(binding.clone());
    assert_eq!(
        canonicalized["roleRef"],
        json!({"kind": "Role", "name": "r"})
    );
    assert_eq!(completed(canonicalized)["roleRef"], binding["roleRef"]);
}

/// The sources of a volume and the handlers of a probe are structs of their own to Go, whose members JSON
/// has among those of the volume and the probe.
#[test]
fn zeros_vanish_in_merged_structs() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "volumes": [{"name": "v", "iscsi": {"targetPortal": "t", "iscsiInterface": "", "fsType": ""}}],
        "ephemeralContainers": [{"name": "", "tty": false, "targetContainerName": ""}],
        "containers": [{"name": "c", "livenessProbe": {
            "httpGet": {"path": "", "port": 80, "scheme": ""}, "periodSeconds": 0}}]}});
    let canonicalized = canonicalized(pod);
    let spec = &canonicalized["spec"];
    assert_eq!(spec["volumes"][0]["iscsi"], json!({"targetPortal": "t"}));
    assert_eq!(spec["ephemeralContainers"], json!([{}]));
    let probe = &spec["containers"][0]["livenessProbe"];
    assert_eq!(*probe, json!({"httpGet": {"port": 80}}));
    let completed = completed(canonicalized);
    assert_eq!(
        completed["spec"]["volumes"][0]["iscsi"],
        json!({"targetPortal": "t", "iqn": "", "lun": 0})
    );
    assert_eq!(
        completed["spec"]["ephemeralContainers"],
        json!([{"name": "", "resources": {}}])
    );
}

#[test]
fn zeros_come_where_go_writes_them() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"env": [{"name": "LIMIT", "valueFrom": {
            "resourceFieldRef": {"resource": "limits.cpu"}}}]}]}});
    assert_eq!(
        completed(pod),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {},
            "spec": {"containers": [{"name": "", "resources": {}, "env": [{"name": "LIMIT", "valueFrom": {
                "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}]}]}})
    );
}

#[test]
fn times_are_seconds_in_utc() {
    let times = |time: &str| {
        let entry = json!({"manager": "m", "time": time});
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "m", "deletionTimestamp": time, "managedFields": [entry]}})
    };
    for (sent, kept) in [
        ("2020-01-01T00:00:00.999Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00+01:00", "2019-12-31T23:00:00Z"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(canonicalized(times(sent)), times(kept));
    }
    let zero = canonicalized(times("0001-01-01T00:00:00Z"));
    assert_eq!(
        zero["metadata"],
        json!({"name": "m", "managedFields": [{"manager": "m"}]})
    );
}

#[test]
fn metadata_of_any_object_is_what_go_writes() {
    let owner = json!({"kind": null, "name": "p", "uid": "u", "controller": null, "blockOwnerDeletion": false});
    let Value::Object(mut metadata) = json!({"name": "a", "generateName": "", "labels": {"a": ""},
        "annotations": {}, "generation": 0, "deletionGracePeriodSeconds": 0, "creationTimestamp": null,
        "ownerReferences": [owner, {}],
        "managedFields": [{"manager": "", "time": "2020-01-01T00:00:00.5Z", "fieldsV1": {"f:a": {}}}]})
    else {
        unreachable!("it is an object");
    };
    canonicalize_metadata(&mut metadata);
    let owner =
        json!({"apiVersion": "", "kind": "", "name": "p", "uid": "u", "blockOwnerDeletion": false});
    let none = json!({"apiVersion": "", "kind": "", "name": "", "uid": ""});
    let entry = json!({"time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:a": {}}});
    assert_eq!(
        Value::Object(metadata),
        json!({"name": "a", "labels": {"a": ""}, "deletionGracePeriodSeconds": 0,
            "ownerReferences": [owner, none], "managedFields": [entry]})
    );
}

#[test]
fn null_is_no_value() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": null,
        "metadata": {"name": "m", "labels": null, "annotations": {"a": ""}}});
    assert_eq!(
        canonicalized(map),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "m", "annotations": {"a": ""}}})
    );
    let mut role = json!({"metadata": {"name": "r"}});
    let found = kind("rbac.authorization.k8s.io/v1", "ClusterRole").expect("a built-in kind");
    complete_with_nulls(found, role.as_object_mut().expect("an object"));
    assert_eq!(role, json!({"metadata": {"name": "r"}, "rules": null}));
}

/// Both functions together do to an object what encoding and decoding does.
#[test]
fn objects_are_as_after_the_wire() {
    let Some(folder) = recorded::testdata("Kubernetes' objects in their canonical form") else {
        return;
    };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let text = std::fs::read(&path).expect("JSON");
        let object: Value = serde_json::from_slice(&text).expect("JSON");
        if object.get("kind").is_none() {
            continue;
        }
        seen += 1;
        let bytes = encode_value(&object).expect("a known kind");
        let mut expected = decode(&bytes, ("", "")).expect("an object");
        let mut found = completed(canonicalized(object));
        without_nulls(&mut expected);
        without_nulls(&mut found);
        assert_eq!(found, expected, "{}", path.display());
    }
    assert!(seen > 0, "there are objects");
}

proptest! {
    /// The same for a pod of which members are missing, zero or there.
    #[test]
    fn odd_pods_are_as_after_the_wire(choices in prop::collection::vec(0..3_u8, 12)) {
        let values = [
            json!({"name": "a"}), json!([{"name": "c"}]), json!("x"), json!(true), json!(7),
        ];
        let zeros = [json!({}), json!([]), json!(""), json!(false), json!(0)];
        let places = [
            ("metadata", 0), ("spec", 0), ("spec/containers", 1), ("spec/hostname", 2),
            ("spec/hostIPC", 3), ("spec/priority", 4), ("spec/containers/0/image", 2),
            ("spec/containers/0/stdin", 3), ("spec/containers/0/ports", 1),
            ("spec/containers/0/ports/0/hostPort", 4), ("spec/securityContext", 0),
            ("spec/serviceAccountName", 2),
        ];
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
        for (choice, (place, form)) in choices.iter().zip(places) {
            let (parent, name) = place.rsplit_once('/').unwrap_or(("", place));
            let parent = if parent.is_empty() { String::new() } else { format!("/{parent}") };
            let value = match choice {
                0 => continue,
                1 => &zeros[form],
                _ if name == "ports" => &json!([{"containerPort": 1}]),
                _ if matches!(name, "spec" | "securityContext") => &zeros[0],
                _ => &values[form],
            };
            if let Some(members) = pod.pointer_mut(&parent).and_then(Value::as_object_mut) {
                members.insert(name.to_owned(), value.clone());
            }
        }
        let bytes = encode_value(&pod).expect("a known kind");
        let mut expected = decode(&bytes, ("", "")).expect("an object");
        let mut found = completed(canonicalized(pod));
        without_nulls(&mut expected);
        without_nulls(&mut found);
        prop_assert_eq!(found, expected);
    }
}
