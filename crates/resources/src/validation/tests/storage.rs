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
