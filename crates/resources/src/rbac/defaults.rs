//! Defaults of the group `rbac.authorization.k8s.io`.
//!
//! Follows pkg/apis/rbac/v1/defaults.go, of Kubernetes 1.36.

use crate::defaults::Literal::{self, Null, Text};
use crate::defaults::Rule::{self, In, Set, When, Zero};

const GROUP: Literal = Text("rbac.authorization.k8s.io");

pub(crate) const ROLE: &[Rule] = &[Zero("rules", Null)];

pub(crate) const BINDING: &[Rule] = &[
    Set("roleRef.apiGroup", GROUP),
    In(
        "subjects[]",
        &[When("kind", &["User", "Group"], &[Set("apiGroup", GROUP)])],
    ),
];
