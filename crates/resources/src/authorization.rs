//! The group `authorization.k8s.io`: reviews of permissions. Nothing of it is stored.

use ringwatch_registry::ServedBy;

use super::strategy::row::{RowBuilder, RowGroup};

const V1: RowGroup = RowGroup::new("authorization.k8s.io", "v1");

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        V1.namespaced("localsubjectaccessreviews", "LocalSubjectAccessReview")
            .review(ServedBy::Handler),
        V1.cluster("selfsubjectaccessreviews", "SelfSubjectAccessReview")
            .review(ServedBy::Handler),
        V1.cluster("selfsubjectrulesreviews", "SelfSubjectRulesReview")
            .review(ServedBy::Handler),
        V1.cluster("subjectaccessreviews", "SubjectAccessReview")
            .review(ServedBy::Handler),
    ]
}
