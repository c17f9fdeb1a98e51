//! Defaults of the group `rbac.authorization.k8s.io`.
//!
//! Follows pkg/apis/rbac/v1/defaults.go, of Kubernetes 1.36.

use crate::defaults::DefaultRule::{self, In, Set, When, Zero};
use crate::defaults::Literal::{self, Null, Text};

const GROUP: Literal = Text("rbac.authorization.k8s.io");

pub(crate) const ROLE: &[DefaultRule] = &[Zero("rules", Null)];

pub(crate) const BINDING: &[DefaultRule] = &[
    Set("roleRef.apiGroup", GROUP),
    In(
        "subjects[]",
        &[When("kind", &["User", "Group"], &[Set("apiGroup", GROUP)])],
    ),
];
