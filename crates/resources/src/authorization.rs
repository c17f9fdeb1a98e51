//! The group `authorization.k8s.io`: reviews of permissions. Nothing of it is stored.

use ringwatch_registry::Served;

use super::strategy::row::{Group, Row};

const V1: Group = Group::new("authorization.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.namespaced("localsubjectaccessreviews", "LocalSubjectAccessReview")
            .review(Served::Handler),
        V1.cluster("selfsubjectaccessreviews", "SelfSubjectAccessReview")
            .review(Served::Handler),
        V1.cluster("selfsubjectrulesreviews", "SelfSubjectRulesReview")
            .review(Served::Handler),
        V1.cluster("subjectaccessreviews", "SubjectAccessReview")
            .review(Served::Handler),
    ]
}
