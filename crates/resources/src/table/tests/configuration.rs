//! Tests of the tables of ConfigMaps, Secrets, ServiceAccounts and ResourceQuotas.

use serde_json::json;

use super::cells;

#[test]
fn configuration_is_counted() {
    let map = json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": ""}});
    assert_eq!(cells("", "ConfigMap", map), json!([3]));
    let secret = json!({"type": "Opaque", "data": {"a": ""}});
    assert_eq!(cells("", "Secret", secret), json!(["Opaque", 1]));
    let account = json!({"secrets": [{"name": "s"}]});
    assert_eq!(cells("", "ServiceAccount", account), json!([]));
    let quota = json!({"status": {
        "hard": {"pods": "4", "limits.cpu": "2", "requests.cpu": "1"}, "used": {"pods": "1", "limits.cpu": "500m"}}});
    assert_eq!(
        cells("", "ResourceQuota", quota),
        json!(["pods: 1/4, requests.cpu: 0/1", "limits.cpu: 500m/2"])
    );
}
