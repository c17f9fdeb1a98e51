//! The group `rbac.authorization.k8s.io`: roles and who has them.

use super::generic::Generic;
use super::row::{Group, Row};
use crate::registry::NameRule;

const V1: Group = Group::new("rbac.authorization.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    let rows = vec![
        V1.cluster("clusterrolebindings", "ClusterRoleBinding"),
        V1.cluster("clusterroles", "ClusterRole"),
        V1.namespaced("rolebindings", "RoleBinding"),
        V1.namespaced("roles", "Role"),
    ];
    rows.into_iter()
        .map(|row| {
            row.strategy(
                Generic::new()
                    .create_on_update()
                    .name_rule(NameRule::PathSegment),
            )
        })
        .collect()
}
