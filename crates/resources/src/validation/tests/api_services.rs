//! Refusals by the checks in `api_services.rs`.

use serde_json::{Value, json};

use super::refused;

#[test]
fn announcements_of_apis_that_are_wrong() {
    let good = json!({"metadata": {"name": "v1.example.com"}, "spec": {"group": "example.com",
        "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100,
        "caBundle": "eA==", "service": {"namespace": "n", "name": "s", "port": 443}}});
    refused(
        crate::apiregistration::validation::api_service,
        &good,
        &[
            (
                "spec.version",
                json!("v2"),
                &[
                    "metadata.name: Invalid value: \"v1.example.com\": must be `spec.version+\".\"+spec.group`: \"v2.example.com\"",
                ],
            ),
            (
                "metadata.generateName",
                json!("v1."),
                &[
                    "metadata.generateName: Invalid value: \"v1.\": must be `spec.version+\".\"+spec.group`: \"v1.example.com\"",
                ],
            ),
            (
                "spec.versionPriority",
                Value::Null,
                &["spec.versionPriority: Invalid value: 0: must be positive and less than 1000"],
            ),
            (
                "spec.service.name",
                Value::Null,
                &["spec.service.name: Required value"],
            ),
            (
                "spec.service.port",
                json!(0),
                &[
                    "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                "spec.insecureSkipTLSVerify",
                json!(true),
                &[
                    "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
                ],
            ),
            (
                "spec.service",
                Value::Null,
                &[
                    "spec.caBundle: Invalid value: \"1 bytes\": local APIServices may not have a caBundle",
                ],
            ),
        ],
    );
}
