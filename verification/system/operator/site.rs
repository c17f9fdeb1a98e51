//! The custom resource that users write: sites. The definition is made from these types, with the rules that a server
//! must enforce.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The messages of the rules.
pub(crate) const TOO_MANY_REPLICAS: &str = "a site has no more replicas than replicasMax";
pub(crate) const HOST_CHANGED: &str = "the host of a site cannot change";

/// A site that is wanted.
#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize, PartialEq)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus",
    selectable = ".spec.host",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    ),
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"),
    printcolumn(name = "Pages", type_ = "integer", json_path = ".status.pages"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.replicas <= self.replicasMax").message(TOO_MANY_REPLICAS))]
pub(crate) struct SiteSpec {
    /// The host at which the site is served. It cannot be changed.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new("self == oldSelf").message(HOST_CHANGED))]
    pub(crate) host: String,
    /// The text of each page.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 8))]
    pub(crate) pages: BTreeMap<String, String>,
    /// Number of replicas that serve it.
    #[schemars(range(min = 0))]
    pub(crate) replicas: i32,
    /// Maximum number of replicas.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) replicas_max: i32,
}

/// The progress of the operator with a site.
#[derive(KubeSchema, Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SiteStatus {
    /// The generation of the site that is done.
    pub(crate) observed_generation: i64,
    /// The term of the leader that has done it.
    pub(crate) term: i32,
    /// The number of pages of the site.
    pub(crate) pages: i32,
    /// The number of replicas that serve these pages.
    pub(crate) replicas: i32,
}
