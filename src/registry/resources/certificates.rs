//! The group `certificates.k8s.io`: requests for certificates.

use super::generic::Generic;
use super::row::{Group, Row, field};
use crate::registry::NameRule;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Group::new("certificates.k8s.io", "v1")
            .cluster("certificatesigningrequests", "CertificateSigningRequest")
            .short(&["csr"])
            .fields([field("spec.signerName")])
            .part("approval")
            .status()
            .strategy(
                Generic::with_status()
                    .named_part("approval", "status")
                    .name_rule(NameRule::PathSegment),
            ),
    ]
}
