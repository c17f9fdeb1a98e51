//! The metrics of requests, and the cache of encoded objects.

use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch_apiserver::endpoints::{EncodingCache, Metrics};

/// The metrics of requests, and the cache of encoded objects.
pub(crate) struct Responses {
    /// Counts requests, watches and what they are answered.
    pub(crate) metrics: Metrics,
    /// Keeps encodings of objects for other clients.
    pub(crate) encodings: EncodingCache,
}

impl Responses {
    /// Creates both, registered, with a cache of at most so many bytes.
    pub(crate) fn new(
        encodings_bytes_max: usize,
        ledger: &Ledger,
        registry: &mut Registry,
    ) -> Self {
        let metrics = Metrics::new();
        metrics.register(registry);
        let encodings = EncodingCache::new(encodings_bytes_max, ledger);
        encodings.register(registry);
        Self { metrics, encodings }
    }
}
