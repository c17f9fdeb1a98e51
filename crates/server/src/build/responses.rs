//! The metrics of requests, the open watches, and the cache of encoded objects.

use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch_endpoints::{EncodingCache, Metrics};
use ringwatch_observe::open_watches::OpenWatches;

/// The parts that all answers to requests share.
pub(crate) struct Responses {
    /// Counts requests, watches and what they are answered.
    pub(crate) metrics: Metrics,
    /// Keeps encodings of objects for other clients.
    pub(crate) encodings: EncodingCache,
    /// The watches of clients.
    pub(crate) watches: OpenWatches,
}

impl Responses {
    /// Creates them, with a cache of at most so many bytes.
    pub(crate) fn new(encodings_bytes_max: usize, ledger: &Ledger) -> Self {
        Self {
            metrics: Metrics::new(),
            encodings: EncodingCache::new(encodings_bytes_max, ledger),
            watches: OpenWatches::default(),
        }
    }

    /// Registers their metrics.
    pub(crate) fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        self.encodings.register(registry);
    }
}
