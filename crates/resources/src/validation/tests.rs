//! Tests of validation, family by family: a valid object is changed at one place, and the errors are compared.

mod access;
mod admission;
mod api_services;
mod autoscaling;
mod claims;
mod cluster;
mod containers;
mod endpoints;
mod flowcontrol;
mod jobs;
mod networking;
mod pods;
mod quotas;
mod storage;
mod workloads;

use ringwatch_apimachinery::path::{remove, set};
use serde_json::{Value, json};

use super::*;

/// A change of an object, and what is wrong afterwards.
type Case<'a> = (&'a str, Value, &'a [&'a str]);

/// Checks that nothing is wrong with an object, and with each change what the case says.
fn refused(check: ObjectCheck, good: &Value, cases: &[Case<'_>]) {
    assert_eq!(messages(&found(check, good)), [""; 0], "{good}");
    for (path, value, wrong) in cases {
        let changed = with(good, path, value.clone());
        assert_eq!(messages(&found(check, &changed)), *wrong, "{path} {value}");
    }
}

/// Returns the object with another value at a path, or without one if the value is null. A number in the
/// path leads to an item.
fn with(object: &Value, path: &str, value: Value) -> Value {
    let mut changed = object.clone();
    let steps: Vec<&str> = path.split('/').collect();
    let (last, lists) = steps.split_last().expect("a path");
    let mut at = &mut changed;
    for list in lists {
        at = at
            .pointer_mut(&format!("/{}", list.replace('.', "/")))
            .expect("an item");
    }
    if value.is_null() {
        drop(remove(at, last));
    } else {
        set(at, last, value);
    }
    changed
}

/// Returns a valid pod with a regular and an init container.
fn good_pod() -> Value {
    json!({"metadata": {"name": "p"}, "spec": {
        "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
        "serviceAccountName": "default",
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "persistentVolumeClaim": {"claimName": "d"}}],
        "containers": [{"name": "a", "image": "i", "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}],
            "env": [{"name": "A", "value": "b"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "successThreshold": 1}}],
        "initContainers": [{"name": "b", "image": "i"}],
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
    }})
}
