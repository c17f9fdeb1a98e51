//! The operations of a store: create, get and statistics; the others are in files of their own.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::request_metrics::BackendOperation;
use super::store::{Store, check_minimum};
use super::{delete, guaranteed_update, list, watcher};
use crate::meta::{Object, ResourceVersion};
use crate::storage::backend::{KeyRange, RangeRequest, prefix_end};
use crate::storage::{
    DeleteOptions, DeletionCheck, GetOptions, Interface, List, ListOptions, Stats, StorageError,
    TryUpdate, UpdateOptions, Versioner, WatchStream,
};

/// The number of objects from which the mean size is estimated: the first ones, at most 48 MiB.
const SIZE_SAMPLE_OBJECTS: u64 = 32;

#[async_trait]
impl Interface for Store {
    fn versioner(&self) -> &Versioner {
        &self.config().versioner
    }

    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        let key = self.full_key(key, false)?;
        if let Ok(Some(_)) = self.config().versioner.object_resource_version(object) {
            return Err(StorageError::VersionOnCreate);
        }
        let (stored, object) = self.encode(object, &[])?;
        let response = self.put(&key, 0, stored, ttl, None).await?;
        if !response.succeeded {
            return Err(StorageError::KeyExists { key });
        }
        Ok(Arc::new(object.at_revision(response.revision)))
    }

    async fn delete(
        &self,
        key: &str,
        options: DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        let key = self.full_key(key, false)?;
        if options.expect_decode_error {
            return delete::delete_corrupt(self, &key).await;
        }
        delete::delete(self, &key, options, check).await
    }

    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError> {
        watcher::watch(self, key, options).await
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        let key = self.full_key(key, false)?;
        let read = self.backend().range(RangeRequest::key(&key));
        let response = self.requests().count(BackendOperation::Get, read).await?;
        check_minimum(options.resource_version, response.revision)?;
        let Some(kv) = response.kvs.first() else {
            let revision = response.revision;
            return Err(StorageError::KeyNotFound { key, revision });
        };
        let values = self.values().reader([kv]).await;
        Ok(Arc::new(values.decode(kv)?))
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        list::get_list(self, key, &options).await
    }

    async fn guaranteed_update(
        &self,
        key: &str,
        options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        let key = self.full_key(key, false)?;
        guaranteed_update::guaranteed_update(self, &key, options, update).await
    }

    async fn stats(&self) -> Result<Stats, StorageError> {
        let prefix = self.full_key(&self.config().resource_prefix, true)?;
        let request = RangeRequest {
            limit: SIZE_SAMPLE_OBJECTS,
            ..RangeRequest::all(KeyRange::Span(prefix.clone(), prefix_end(&prefix)))
        };
        let read = self.backend().range(request);
        let response = self.requests().count(BackendOperation::Count, read).await?;
        let sampled = response.kvs.iter().map(|kv| kv.value.len() as u64);
        let total: u64 = sampled.sum();
        Ok(Stats {
            object_count: response.count,
            estimated_average_object_size_bytes: total
                .checked_div(response.kvs.len() as u64)
                .unwrap_or_default(),
        })
    }

    fn readiness_check(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn request_watch_progress(&self) -> Result<(), StorageError> {
        Ok(self.backend().request_progress().await?)
    }

    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError> {
        Ok(ResourceVersion(self.current_revision().await?))
    }

    fn compact_revision(&self) -> u64 {
        let published = self.config().compact_revision.as_ref();
        published.map_or(0, |revision| *revision.borrow())
    }
}
