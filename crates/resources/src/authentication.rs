//! The group `authentication.k8s.io`: reviews of tokens and users. Nothing of it is stored.

use ringwatch_registry::Served;

use super::strategy::row::{Group, Row};

const V1: Group = Group::new("authentication.k8s.io", "v1");

pub(super) fn rows() -> Vec<Row> {
    vec![
        V1.cluster("selfsubjectreviews", "SelfSubjectReview")
            .review(Served::Handler),
        V1.cluster("tokenreviews", "TokenReview")
            .review(Served::Handler),
    ]
}
