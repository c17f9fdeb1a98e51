//! Tables of RoleBindings and ClusterRoleBindings. Roles have no columns of their own.

use crate::table::{Column, TableConvertor, cells, subject::RowSubject};

/// Table of RoleBindings, with role and subjects.
pub(crate) static ROLE_BINDINGS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        ROLE,
        Column::AGE,
        Column::text("Users", "Users in the roleBinding").wide(),
        Column::text("Groups", "Groups in the roleBinding").wide(),
        Column::text("ServiceAccounts", "ServiceAccounts in the roleBinding").wide(),
    ],
    row,
);

/// Table of ClusterRoleBindings, with role and subjects.
pub(crate) static CLUSTER_ROLE_BINDINGS: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        ROLE,
        Column::AGE,
        Column::text("Users", "Users in the clusterRoleBinding").wide(),
        Column::text("Groups", "Groups in the clusterRoleBinding").wide(),
        Column::text(
            "ServiceAccounts",
            "ServiceAccounts in the clusterRoleBinding",
        )
        .wide(),
    ],
    row,
);

const ROLE: Column = Column::text("Role", "The role that is given.");

fn row(binding: &RowSubject<'_>) -> Vec<serde_json::Value> {
    let role = binding.text("roleRef.name");
    let all = |kind| {
        let subjects = binding
            .list("subjects")
            .filter(|it| it.text("kind") == kind);
        let names = subjects.map(|it| match kind {
            "ServiceAccount" => format!("{}/{}", it.text("namespace"), it.text("name")),
            _ => it.text("name").to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    cells![
        binding.name(),
        format!("{}/{role}", binding.text("roleRef.kind")),
        binding.age(),
        all("User"),
        all("Group"),
        all("ServiceAccount"),
    ]
}
