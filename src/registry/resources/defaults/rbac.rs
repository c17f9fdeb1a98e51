//! The group `rbac.authorization.k8s.io`.

use super::Literal::{Null, Text};
use super::Rule::{self, In, Set, When, Zero};

const GROUP: Rule = Set("apiGroup", Text("rbac.authorization.k8s.io"));

pub(in crate::registry::resources) const ROLE: &[Rule] = &[Zero("rules", Null)];

pub(in crate::registry::resources) const BINDING: &[Rule] = &[
    In("roleRef", &[GROUP]),
    In("subjects[]", &[When("kind", &["User", "Group"], &[GROUP])]),
];
