//! The factory of storages, and the compactors from which storages learn the compacted revision.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use ringwatch::clock::Clock;
use ringwatch::storage::cacher::CacheMetrics;
use ringwatch::storage::encryption::Encryption;
use ringwatch::storage::etcd3::{self, CompactionMetrics};
use ringwatch_registry::object_counts::ObjectCounts;
use ringwatch_registry::storage_factory::{OtherBackend, StorageFactory};

use super::backend::compactor;
use super::inputs::ServerInputs;
use super::tasks::Tasks;
use crate::config::flags::ServeFlags;

/// The metrics of storages and caches.
pub(crate) struct StorageMetrics {
    compactions: CompactionMetrics,
    lists: etcd3::ListMetrics,
    requests: etcd3::RequestMetrics,
    caches: CacheMetrics,
    counts: ObjectCounts,
}

impl StorageMetrics {
    /// Registers the metrics, those about shards if there can be any.
    pub(crate) fn register(registry: &mut Registry, flags: &ServeFlags, clock: &Clock) -> Self {
        let compactions = CompactionMetrics::register(registry);
        let lists = etcd3::ListMetrics::register(registry);
        let requests = etcd3::RequestMetrics::register(registry, clock.clone());
        let caches = CacheMetrics::register(registry);
        if flags.api_features().sharded_lists {
            caches.register_shards(registry);
        }
        Self {
            compactions,
            lists,
            requests,
            caches,
            counts: ObjectCounts::register(registry),
        }
    }
}

/// Builds the factory of storages over the backends of a server.
pub(crate) fn storage_factory(
    inputs: &ServerInputs<'_>,
    encryption: &Encryption,
    metrics: StorageMetrics,
) -> (Arc<StorageFactory>, Tasks) {
    let (etcd, clock) = (&inputs.flags.etcd, &inputs.clock);
    let mut tasks = Tasks::default();
    let mut compact = |backend: &Arc<_>| {
        let compactor = compactor(backend, etcd, &metrics.compactions, clock);
        let compact_revision = compactor.compact_revision();
        tasks.background_to_its_end("compactor", |end| compactor.run(end.cancelled_owned()));
        compact_revision
    };
    let others = inputs.overrides.iter().map(|other| OtherBackend {
        types: other.types.clone(),
        backend: Arc::clone(&other.open.backend),
        compact_revision: compact(&other.open.backend),
    });
    let others = others.collect();
    let factory = StorageFactory {
        backend: Arc::clone(&inputs.backend.backend),
        others,
        prefix: etcd.etcd_prefix.clone(),
        media_type: inputs.flags.storage_media_type,
        encryption: encryption.clone(),
        caches: inputs.flags.watch_cache_sizes(),
        has_spans: inputs.flags.has_spans(),
        shard_indexes: inputs.flags.api_features().sharded_lists,
        list_metrics: metrics.lists,
        request_metrics: metrics.requests,
        metrics: metrics.caches,
        counts: metrics.counts,
        lease_reuse: etcd.lease_reuse(),
        compact_revision: compact(&inputs.backend.backend),
        ledger: inputs.ledger.clone(),
        clock: clock.clone(),
    };
    tasks.background("object counts", factory.counts.clone().run(clock.clone()));
    tasks.serving("KMS plugins", encryption.clone().poll_kms());
    (Arc::new(factory), tasks)
}
