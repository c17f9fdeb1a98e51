//! The group `authentication.k8s.io`: reviews of tokens and users. Nothing of it is stored.

use ringwatch_registry::ServedBy;

use super::strategy::row::{RowBuilder, RowGroup};

const V1: RowGroup = RowGroup::new("authentication.k8s.io", "v1");

pub(super) fn rows() -> Vec<RowBuilder> {
    vec![
        V1.cluster("selfsubjectreviews", "SelfSubjectReview")
            .review(ServedBy::Handler),
        V1.cluster("tokenreviews", "TokenReview")
            .review(ServedBy::Handler),
    ]
}
