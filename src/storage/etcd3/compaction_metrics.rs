//! Counts the compactions of the stores.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// The counters of compactions of all stores of a server. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct CompactionMetrics {
    /// Compactions that this server did.
    pub(super) done: Counter,
    /// Compactions that failed, and rounds in which the store could not be asked whose turn it is.
    pub(super) failed: Counter,
}

impl CompactionMetrics {
    /// Creates the counters and registers them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "ringwatch_compactions",
            "Compactions of the store that this server did; of several servers on a store one compacts at a time",
            metrics.done.clone(),
        );
        registry.register(
            "ringwatch_compaction_failures",
            "Compactions of the store that failed; while they do, history grows and with it the store",
            metrics.failed.clone(),
        );
        metrics
    }
}
