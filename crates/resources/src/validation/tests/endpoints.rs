//! Refusals by the checks in `endpoints.rs`.

use serde_json::{Value, json};

use super::refused;
use crate::core::endpoints::{slice, slice_endpoints, slice_update};
use crate::validation::*;

#[test]
fn slices_that_are_wrong() {
    let good = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}],
        "ports": [{"name": "", "port": 80, "protocol": "TCP"}]});
    refused(
        slice,
        &good,
        &[("addressType", json!(""), &["addressType: Required value"])],
    );
    const NO_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    let table: &[(&str, Value, &[String])] = &[
        ("IPv4", json!({"addresses": ["010.1.2.3"]}), &["endpoints[0].addresses[0]: Invalid value: \"010.1.2.3\": must not have leading 0s".into()]),
        (
            "IPv4",
            json!({"addresses": ["::1"]}),
            &[
                "endpoints[0].addresses: Invalid value: \"::1\": must be an IPv4 address".into(),
                "endpoints[0].addresses[0]: Invalid value: \"::1\": may not be in the loopback range (127.0.0.0/8, ::1/128)".into(),
            ],
        ),
        (
            "IPv4",
            json!({"addresses": ["odd"]}),
            &[format!("endpoints[0].addresses[0]: Invalid value: \"odd\": {NO_IP}")],
        ),
        (
            "IPv6",
            json!({"addresses": ["2001:DB8::1"]}),
            &["endpoints[0].addresses[0]: Invalid value: \"2001:DB8::1\": must be in canonical form (\"2001:db8::1\")".into()],
        ),
        ("FQDN", json!({"addresses": ["example.com."]}), &[]),
        (
            "FQDN",
            json!({"addresses": ["com"]}),
            &["endpoints[0].addresses[0]: Invalid value: \"com\": should be a domain with at least two segments separated by dots".into()],
        ),
        (
            "IPv4",
            json!({"addresses": ["10.1.2.3"], "hints": {
                "forZones": [{"name": "a"}, {"name": "a"}],
                "forNodes": [{"name": "b"}, {"name": "b"}]}}),
            &[
                "endpoints[0].hints.forZones[1].name: Duplicate value: \"a\"".into(),
                "endpoints[0].hints.forNodes[1].name: Duplicate value: \"b\"".into(),
            ],
        ),
    ];
    for (kind, endpoint, expected) in table {
        let object = json!({"addressType": kind, "endpoints": [endpoint]});
        let mut wrong = messages(&found(slice_endpoints, &object));
        wrong.sort();
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(wrong, expected, "{kind} {endpoint}");
        // Endpoints that do not change stay as they are.
        let unchanged = found_in_change(slice_update, &object, &object);
        assert_eq!(messages(&unchanged), [""; 0], "{kind} {endpoint}");
    }
    let named = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"],
        "hints": {"forNodes": [{"name": "b c"}], "forZones": [{"name": "b c"}]}}]});
    let fields: Vec<String> = found_in_change(slice_update, &named, &good)
        .into_iter()
        .map(|error| error.field)
        .collect();
    assert_eq!(
        fields,
        [
            "endpoints[0].hints.forZones[0].name",
            "endpoints[0].hints.forNodes[0].name"
        ]
    );
}
