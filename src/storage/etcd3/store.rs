//! The store of one type, and what its operations share.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;

use super::decode::Values;
use super::lease_manager::{LEASE_REUSE_DEFAULT, LeaseManager};
use super::list_memory::ObjectSize;
use super::list_metrics::TypeListMetrics;
use super::request_metrics::{BackendOperation, RequestMetrics, TypeRequestMetrics};
use crate::clock::Clock;
use crate::meta::{Object, ResourceVersion};
use crate::storage::backend::{
    Backend, BackendError, Compare, Op, RangeContent, RangeRequest, Txn, TxnResponse,
};
use crate::storage::encryption::Transformer;
use crate::storage::{StorageError, Versioner, prepare_key};

/// The store of the objects of one type, in a backend.
#[derive(Clone, Debug)]
pub struct Store {
    backend: Arc<dyn Backend>,
    config: Arc<Config>,
    /// The decoding and encoding of values.
    values: Values,
    leases: Arc<LeaseManager>,
    /// The metrics of lists.
    lists: TypeListMetrics,
    /// The mean size of objects, for lists that count their memory.
    object_size: ObjectSize,
    /// The metrics of requests to the backend.
    requests: TypeRequestMetrics,
}

/// The configuration of the store of a type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The prefix of all keys of all types, without a slash at the end: `/registry`.
    pub path_prefix: String,
    /// The prefix of the keys of this type after that: `/configmaps`.
    pub resource_prefix: String,
    /// The conversion of objects, with their resource versions, of this type.
    pub versioner: Versioner,
    /// The source of time, for leases and pauses.
    pub clock: Clock,
    /// The revision up to which history is compacted, from [`super::Compactor::compact_revision`]; `None` where no
    /// compactor runs.
    pub compact_revision: Option<watch::Receiver<u64>>,
}

impl Config {
    /// Returns the configuration of a type without selectable fields but name and namespace, in a store that no
    /// compactor compacts.
    #[must_use]
    pub fn new(
        path_prefix: impl Into<String>,
        resource_prefix: impl Into<String>,
        clock: Clock,
    ) -> Self {
        Self {
            path_prefix: path_prefix.into(),
            resource_prefix: resource_prefix.into(),
            versioner: Versioner::default(),
            clock,
            compact_revision: None,
        }
    }

    /// Returns this configuration with another versioner.
    #[must_use]
    pub fn with_versioner(self, versioner: Versioner) -> Self {
        Self { versioner, ..self }
    }

    /// Returns this configuration with the revision up to which a compactor compacts history.
    #[must_use]
    pub fn with_compact_revision(self, compact_revision: watch::Receiver<u64>) -> Self {
        Self {
            compact_revision: Some(compact_revision),
            ..self
        }
    }
}

impl Store {
    /// Creates the store of one type.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, config: Config) -> Self {
        let requests = RequestMetrics::new(config.clock.clone()).of_type("", "");
        let clock = config.clock.clone();
        let leases = LeaseManager::new(
            Arc::clone(&backend),
            requests.clone(),
            LEASE_REUSE_DEFAULT,
            clock,
        );
        let values = Values {
            versioner: config.versioner.clone(),
            transformer: Transformer::default(),
        };
        Self {
            backend,
            config: Arc::new(config),
            values,
            leases: Arc::new(leases),
            lists: TypeListMetrics::default(),
            object_size: ObjectSize::default(),
            requests,
        }
    }

    /// Returns this store with metrics of its lists and of its requests to the backend.
    #[must_use]
    pub fn counted(self, lists: TypeListMetrics, requests: TypeRequestMetrics) -> Self {
        let leases = self.lease_manager(&requests, self.leases.reuse_max());
        Self {
            leases: Arc::new(leases),
            lists,
            requests,
            ..self
        }
    }

    /// Returns this store with leases that objects share for at most this time; 0 for a lease of its own for each
    /// object.
    #[must_use]
    pub fn sharing_leases(self, reuse_max: Duration) -> Self {
        let leases = self.lease_manager(&self.requests, reuse_max);
        Self {
            leases: Arc::new(leases),
            ..self
        }
    }

    fn lease_manager(&self, requests: &TypeRequestMetrics, reuse_max: Duration) -> LeaseManager {
        let (backend, clock) = (Arc::clone(&self.backend), self.config.clock.clone());
        LeaseManager::new(backend, requests.clone(), reuse_max, clock)
    }

    /// Returns this store with encryption of its values.
    #[must_use]
    pub fn encrypted(mut self, transformer: Transformer) -> Self {
        self.values.transformer = transformer;
        self
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the metrics of requests to the backend.
    pub(super) fn requests(&self) -> &TypeRequestMetrics {
        &self.requests
    }

    pub(super) fn lists(&self) -> &TypeListMetrics {
        &self.lists
    }

    pub(super) fn object_size(&self) -> &ObjectSize {
        &self.object_size
    }

    pub(super) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.config.clock
    }

    /// Returns the full key of an object or a list.
    pub(super) fn full_key(&self, key: &str, recursive: bool) -> Result<String, StorageError> {
        Ok(prepare_key(&self.config.path_prefix, key, recursive)?)
    }

    /// Returns the newest revision, by a read of a key that does not exist.
    pub(super) async fn current_revision(&self) -> Result<u64, StorageError> {
        let key = format!("{}{}", self.config.path_prefix, self.config.resource_prefix);
        let request = RangeRequest {
            content: RangeContent::Count,
            ..RangeRequest::key(key)
        };
        Ok(self.backend.range(request).await?.revision)
    }

    /// Writes the key if its last write was at `revision` (0: if it does not exist); otherwise does `otherwise`. If the
    /// lease has just expired, another one is granted, once.
    pub(super) async fn put(
        &self,
        key: &str,
        revision: u64,
        value: Bytes,
        ttl: Option<u64>,
        otherwise: Option<Op>,
    ) -> Result<TxnResponse, StorageError> {
        let operation = match otherwise {
            Some(_) => BackendOperation::Update,
            None => BackendOperation::Create,
        };
        let value = self.values.seal(value, key)?;
        let mut retried = false;
        loop {
            let lease = match ttl.filter(|ttl| *ttl > 0) {
                Some(ttl) => Some(self.leases.lease(ttl).await?),
                None => None,
            };
            let txn = Txn {
                compare: Compare::ModRevision(key.to_owned(), revision),
                then: Op::Put {
                    key: key.to_owned(),
                    value: value.clone(),
                    lease,
                },
                otherwise: otherwise.clone(),
            };
            let written = self.requests.count(operation, self.backend.txn(txn));
            match written.await {
                Err(BackendError::LeaseNotFound) if !retried => {
                    self.leases.forget().await;
                    retried = true;
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Returns the bytes to store and the object that they encode, which has no revision yet.
    ///
    /// # Errors
    /// [`StorageError::Internal`] when the value could not be decoded again.
    pub(super) fn encode(
        &self,
        value: &Value,
        replaced: &[u8],
    ) -> Result<(Bytes, Object), StorageError> {
        let object = self.config.versioner.prepare_for_storage(value, replaced);
        let object = object.map_err(|error| StorageError::Internal {
            message: format!("the object cannot be stored: {error}"),
        })?;
        Ok((object.stored().clone(), object))
    }
}

/// Checks that a store at revision `current` can answer a read at `wanted` or later.
pub(super) fn check_minimum(
    wanted: Option<ResourceVersion>,
    current: u64,
) -> Result<(), StorageError> {
    match wanted {
        Some(ResourceVersion(requested)) if requested > current => {
            Err(StorageError::TooLargeResourceVersion {
                requested,
                current,
                retry_after_seconds: 0,
            })
        }
        _ => Ok(()),
    }
}
