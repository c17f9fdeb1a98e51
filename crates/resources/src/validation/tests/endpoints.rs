//! Refusals by the checks in `endpoints.rs`.

use serde_json::json;

use super::refused;

#[test]
fn slices_that_are_wrong() {
    refused(
        crate::core::endpoints::slice,
        &json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}],
            "ports": [{"name": "", "port": 80, "protocol": "TCP"}]}),
        &[
            ("addressType", json!(""), &["addressType: Required value"]),
            (
                "endpoints",
                json!([{"addresses": ["::1"]}]),
                &[
                    "endpoints[0].addresses[0]: Invalid value: \"::1\": must be a valid IPv4 address",
                ],
            ),
        ],
    );
}
