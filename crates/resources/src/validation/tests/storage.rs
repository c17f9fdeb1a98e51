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
}
