//! Refusals by the checks in `access.rs`.

use ringwatch_apimachinery::path::set;
use serde_json::json;

use super::refused;
use crate::validation::*;

#[test]
fn aggregated_roles_that_are_wrong() {
    let selector = json!([{"matchExpressions": [{"key": "a", "operator": "Odd"}]}]);
    refused(
        crate::rbac::validation::cluster_role,
        &json!({}),
        &[(
            "aggregationRule",
            json!({"clusterRoleSelectors": selector}),
            &[
                "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: \"Odd\": not a valid selector operator",
                "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
            ],
        )],
    );
}

#[test]
fn an_update_tells_of_a_selector_that_was_wrong_before_as_a_whole() {
    use crate::rbac::validation::cluster_role_update;
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]});
    let role = json!({"aggregationRule": {"clusterRoleSelectors": [selector]}});
    let fields = |old: &Value| -> Vec<String> {
        let errors = found_in_change(cluster_role_update, &role, old);
        errors.into_iter().map(|error| error.field).collect()
    };
    let whole = "aggregationRule.clusterRoleSelectors[0]";
    assert_eq!(fields(&role), [whole]);
    let value = format!("{whole}.matchExpressions[0].values[0]");
    assert_eq!(fields(&json!({})), [&value, whole]);
}

#[test]
fn budgets_keep_selectors_that_they_were_allowed_earlier() {
    use crate::policy::validation::{disruption_budget, disruption_budget_update};
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]});
    let old = json!({"spec": {"selector": selector}});
    assert_eq!(found(disruption_budget, &old).len(), 1);
    assert_eq!(found_in_change(disruption_budget_update, &old, &old), []);
    let right = json!({"spec": {"selector": {}}});
    assert_eq!(
        found_in_change(disruption_budget_update, &old, &right).len(),
        1
    );
}

#[test]
fn roles_and_bindings_that_are_wrong() {
    let role = json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]});
    refused(
        crate::rbac::validation::role,
        &role,
        &[
            (
                "rules",
                json!([{}]),
                &[
                    "rules[0].verbs: Required value: verbs must contain at least one value",
                    "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                    "rules[0].resources: Required value: resource rules must supply at least one resource",
                ],
            ),
            (
                "rules",
                json!([{"verbs": ["get"], "nonResourceURLs": ["/x"]}]),
                &[
                    "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
                ],
            ),
        ],
    );
    let binding = json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]});
    refused(
        crate::rbac::validation::role_binding,
        &binding,
        &[
            (
                "roleRef.kind",
                json!("Odd"),
                &[
                    "roleRef.kind: Unsupported value: \"Odd\": supported values: \"Role\", \"ClusterRole\"",
                ],
            ),
            (
                "subjects",
                json!([{"kind": "Odd"}]),
                &[
                    "subjects[0].name: Required value",
                    "subjects[0].kind: Unsupported value: \"Odd\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                ],
            ),
        ],
    );
    let mut other = binding.clone();
    set(&mut other, "roleRef.name", json!("s"));
    assert_eq!(
        messages(&found_in_change(
            crate::rbac::validation::binding_update,
            &other,
            &binding
        )),
        [
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"s\"}: cannot change roleRef"
        ]
    );
}
