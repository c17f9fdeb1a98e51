//! Refusals by the checks in `storage.rs`.

use ringwatch_apimachinery::path::set;
use serde_json::{Value, json};

use super::refused;
use crate::validation::*;

#[test]
fn classes_that_are_wrong() {
    let class = json!({"provisioner": "example.com/p", "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete"});
    refused(
        crate::storage::validation::storage_class,
        &class,
        &[
            ("provisioner", Value::Null, &["provisioner: Required value"]),
            ("reclaimPolicy", json!(""), &[]),
            (
                "volumeBindingMode",
                json!(""),
                &[
                    "volumeBindingMode: Unsupported value: \"\": supported values: \"Immediate\", \"WaitForFirstConsumer\"",
                ],
            ),
            (
                "reclaimPolicy",
                json!("Odd"),
                &[
                    "reclaimPolicy: Unsupported value: \"Odd\": supported values: \"Delete\", \"Retain\"",
                ],
            ),
        ],
    );
    let mut other = class.clone();
    set(&mut other, "provisioner", json!("p"));
    assert_eq!(
        messages(&found_in_change(
            crate::storage::validation::storage_class_update,
            &other,
            &class
        )),
        ["provisioner: Invalid value: \"p\": field is immutable"]
    );
    for (parameters, shown) in [(json!({}), "{}"), (json!(null), "null")] {
        let (mut some, mut none) = (class.clone(), class.clone());
        set(&mut some, "parameters", json!({"a": "b"}));
        set(&mut none, "parameters", parameters);
        let change =
            |old| found_in_change(crate::storage::validation::storage_class_update, &none, old);
        let told = format!("parameters: Invalid value: {shown}: field is immutable");
        assert_eq!(messages(&change(&some)), [told]);
        assert_eq!(change(&class), []);
    }
    // The driver of attributes is named as a provisioner is.
    refused(
        crate::storage::validation::attributes_class,
        &json!({"driverName": "example.com/Driver", "parameters": {"a": "b"}}),
        &[
            ("driverName", json!("x".repeat(63)), &[]),
            ("driverName", Value::Null, &["driverName: Required value"]),
            (
                "parameters",
                Value::Null,
                &["parameters: Required value: must contain at least one key/value pair"],
            ),
        ],
    );
}

#[test]
fn csi_drivers_that_are_wrong() {
    let token = |seconds: i64| json!([{"audience": "a", "expirationSeconds": seconds}]);
    refused(
        crate::storage::validation::driver_kind,
        &json!({"metadata": {"name": "d"}, "spec": {"fsGroupPolicy": "None"}}),
        &[
            (
                "spec.serviceAccountTokenInSecrets",
                json!(false),
                &[
                    "spec.serviceAccountTokenInSecrets: Invalid value: false: serviceAccountTokenInSecrets is set but no tokenRequests are specified",
                ],
            ),
            ("spec.tokenRequests", token(600), &[]),
            (
                "spec.tokenRequests",
                token(599),
                &[
                    "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
                ],
            ),
            (
                "spec.tokenRequests",
                token((1 << 32) + 1),
                &[
                    "spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
                ],
            ),
            (
                "spec.tokenRequests",
                json!([{"audience": "a"}, {"audience": "a"}]),
                &["spec.tokenRequests[1].audience: Duplicate value: \"a\""],
            ),
            (
                "spec.nodeAllocatableUpdatePeriodSeconds",
                json!(9),
                &[
                    "spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds",
                ],
            ),
        ],
    );
}

#[test]
fn what_is_told_of_an_attachment_is_bounded() {
    let with = |message: String| {
        json!({"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
            "status": {"attachError": {"message": message, "errorCode": -1}}})
    };
    let old = with(String::new());
    let wrong = |new: &Value| {
        let errors = crate::storage::validation::attachment_status_update(new, &old);
        messages(&errors)
    };
    let code = "status.attachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive";
    assert_eq!(wrong(&with("x".repeat(1024))), [code]);
    assert_eq!(
        wrong(&with("x".repeat(1025))),
        [
            "status.attachError.message: Too long: may not be more than 262144 bytes",
            code
        ]
    );
}

#[test]
fn capacities_keep_topologies_that_they_were_allowed_earlier() {
    use crate::storage::validation::{capacity_left, capacity_left_update};
    let topology = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]});
    let old = json!({"storageClassName": "s", "nodeTopology": topology});
    assert_eq!(found(capacity_left, &old).len(), 1);
    assert_eq!(found_in_change(capacity_left_update, &old, &old), []);
    let right = json!({"storageClassName": "t", "nodeTopology": {}});
    let fields: Vec<_> = found_in_change(capacity_left_update, &old, &right)
        .into_iter()
        .map(|error| error.field)
        .collect();
    assert_eq!(
        fields,
        [
            "nodeTopology.matchExpressions[0].values[0]",
            "nodeTopology",
            "storageClassName"
        ]
    );
}

#[test]
fn errors_of_a_driver_come_in_the_order_of_its_checks() {
    let driver = json!({"spec": {"volumeLifecycleModes": ["Odd"], "serviceAccountTokenInSecrets": true,
        "nodeAllocatableUpdatePeriodSeconds": 1, "fsGroupPolicy": "Odd"}});
    let fields: Vec<_> = found(crate::storage::validation::driver_kind, &driver)
        .into_iter()
        .map(|error| error.field)
        .collect();
    assert_eq!(
        fields,
        [
            "spec.fsGroupPolicy",
            "spec.volumeLifecycleModes",
            "spec.nodeAllocatableUpdatePeriodSeconds",
            "spec.serviceAccountTokenInSecrets"
        ]
    );
}
