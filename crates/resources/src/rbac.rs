//! The group `rbac.authorization.k8s.io`: roles and their bindings.

use ringwatch_apimachinery::NameRule;

use super::checks::access as checks;
use super::defaults::rbac as defaults;
use super::generic::Generic;
use super::row::{Group, Row};

const V1: Group = Group::new("rbac.authorization.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    let strategy = |rules| {
        Generic::new()
            .defaults(rules)
            .create_on_update()
            .name_rule(NameRule::PathSegment)
    };
    let binding = |check| {
        strategy(defaults::BINDING)
            .check(check)
            .check_on_update(checks::binding_update)
    };
    vec![
        V1.cluster("clusterrolebindings", "ClusterRoleBinding")
            .strategy(binding(checks::cluster_role_binding)),
        V1.cluster("clusterroles", "ClusterRole")
            .strategy(strategy(defaults::ROLE).check(checks::cluster_role)),
        V1.namespaced("rolebindings", "RoleBinding")
            .strategy(binding(checks::role_binding)),
        V1.namespaced("roles", "Role")
            .strategy(strategy(defaults::ROLE).check(checks::role)),
    ]
}
