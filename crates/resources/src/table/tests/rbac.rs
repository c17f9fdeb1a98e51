//! Tests of the tables of RoleBindings and ClusterRoleBindings.

use serde_json::json;

use super::cells;

#[test]
fn bindings_show_whom_they_bind() {
    let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [
        {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "User", "name": "w"},
        {"kind": "ServiceAccount", "namespace": "ns", "name": "s"}]});
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        assert_eq!(
            cells("rbac.authorization.k8s.io", kind, binding.clone()),
            json!(["ClusterRole/view", "u, w", "g", "ns/s"])
        );
    }
}
