//! The metrics of the watch cache: under kube-apiserver's names where it has them.

pub(crate) mod cache_metrics;
pub(crate) mod dispatch_metrics;
pub(crate) mod engine_metrics;
pub(crate) mod type_labels;
