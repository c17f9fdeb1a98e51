//! The labels by which metrics tell types apart.

use prometheus_client::encoding::EncodeLabelSet;

/// The labels of a metric: the type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct TypeLabels {
    /// The API group; empty for the core.
    pub(crate) group: String,
    /// The plural resource.
    pub(crate) resource: String,
}
