//! Tests of the tables of ResourceClaims and ResourceSlices.

use serde_json::json;

use super::cells;

#[test]
fn devices_show_who_has_them() {
    let group = "resource.k8s.io";
    let claim = json!({"status": {"allocation": {}, "reservedFor": [{}]}});
    assert_eq!(
        cells(group, "ResourceClaim", claim),
        json!(["allocated,reserved"])
    );
    assert_eq!(cells(group, "ResourceClaim", json!({})), json!(["pending"]));
    let slice = json!({"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}});
    assert_eq!(cells(group, "ResourceSlice", slice), json!(["n", "d", "p"]));
    assert_eq!(cells(group, "DeviceClass", json!({})), json!([]));
}
