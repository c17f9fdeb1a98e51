//! The group `apiextensions.k8s.io`: where custom resources are defined.

use serde_json::json;

use super::generic::Generic;
use super::part::PartMetadata;
use super::row::{Group, Row};

pub(super) fn rows() -> Vec<Row> {
    let status = json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": null,
    });
    vec![
        Group::new("apiextensions.k8s.io", "v1")
            .cluster("customresourcedefinitions", "CustomResourceDefinition")
            .short(&["crd", "crds"])
            .category("api-extensions")
            .stored_in(Group::new("apiextensions.k8s.io", "v1beta1"))
            .prefix("apiextensions.k8s.io/customresourcedefinitions")
            .status()
            .strategy(
                Generic::with_status()
                    .verbatim()
                    .initial_status(status)
                    .status_metadata(PartMetadata::KeepsAll)
                    .generation(&["spec"])
                    .conditional_update(),
            ),
    ]
}
