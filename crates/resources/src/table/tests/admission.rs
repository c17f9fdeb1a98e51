//! Tests of the tables of webhooks and admission policies.

use serde_json::json;

use super::cells;

#[test]
fn webhooks_and_policies_are_counted() {
    let group = "admissionregistration.k8s.io";
    let webhooks = json!({"webhooks": [{}, {}]});
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        assert_eq!(cells(group, kind, webhooks.clone()), json!([2]));
    }
    let policy = json!({"spec": {"validations": [{}], "mutations": [{}, {}],
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}});
    assert_eq!(
        cells(group, "ValidatingAdmissionPolicy", policy.clone()),
        json!([1, "v1/ConfigMap"])
    );
    assert_eq!(
        cells(group, "MutatingAdmissionPolicy", policy),
        json!([2, "v1/ConfigMap"])
    );
    for (reference, expected) in [
        (json!(null), "<unset>"),
        (json!({"name": "p"}), "*/p"),
        (json!({"name": "p", "namespace": "ns"}), "ns/p"),
    ] {
        let binding = json!({"spec": {"policyName": "x", "paramRef": reference}});
        let found = cells(group, "ValidatingAdmissionPolicyBinding", binding);
        assert_eq!(found, json!(["x", expected]));
    }
}
