//! The group `rbac.authorization.k8s.io`: roles and their bindings.

mod defaults;
pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_apimachinery::NameRule;

use super::strategy::generic::Generic;
use super::strategy::row::{RowBuilder, RowGroup};

const V1: RowGroup = RowGroup::new("rbac.authorization.k8s.io", "v1");

pub(super) fn rows() -> Vec<RowBuilder> {
    let strategy = |rules| {
        Generic::new()
            .defaults(rules)
            .create_on_update()
            .name_rule(NameRule::StrictPathSegment)
            .names_on_update()
    };
    let binding = |check| {
        strategy(defaults::BINDING)
            .check(check)
            .check_on_update(validation::binding_update)
    };
    let role = || strategy(defaults::ROLE).managed_if_empty(&["rules"]);
    vec![
        V1.cluster("clusterrolebindings", "ClusterRoleBinding")
            .strategy(binding(validation::cluster_role_binding)),
        V1.cluster("clusterroles", "ClusterRole").strategy(
            role()
                .check_on_create(validation::cluster_role)
                .check_on_update(validation::cluster_role_update),
        ),
        V1.namespaced("rolebindings", "RoleBinding")
            .strategy(binding(validation::role_binding)),
        V1.namespaced("roles", "Role")
            .strategy(role().check(validation::role)),
    ]
}
