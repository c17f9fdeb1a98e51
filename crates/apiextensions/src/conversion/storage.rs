//! A storage whose objects are written in one version and read in another.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, GetOptions, Interface, List, ListOptions, Rejection, Stats,
    StorageError, TryUpdate, UpdateOptions, Updated, Versioner, WatchStream,
};
use ringwatch_registry::Resource;
use serde_json::Value;

use super::Converter;
use super::list::ConvertedList;
use super::selection::Selection;
use super::served_version::{ServedVersion, failed, internal};
use super::shared_conversions::SharedConversions;

/// Shows the objects of a storage as a resource is served.
#[derive(Debug)]
pub struct ConvertedStorage {
    inner: Arc<dyn Interface>,
    shown: Arc<ServedVersion>,
    /// The version in which new content is written.
    stored_version: String,
    /// The resource of the storage version, if that is served; it says how stored objects are completed.
    stored_resource: Option<Arc<Resource>>,
}

impl ConvertedStorage {
    /// Makes the storage as this resource is served; `stored_resource` is that of the stored version, if it is served.
    /// `conversions` keeps for a while, and counts, all that is converted for watches.
    #[must_use]
    pub fn new(
        inner: Arc<dyn Interface>,
        converter: Converter,
        resource: Arc<Resource>,
        stored_resource: Option<Arc<Resource>>,
        conversions: &SharedConversions,
    ) -> Self {
        let shared = conversions.of_version();
        Self {
            stored_resource,
            inner,
            stored_version: resource.storage_version.to_string(),
            shown: Arc::new(ServedVersion::new(converter, resource, shared)),
        }
    }

    /// Returns the object in the storage version.
    async fn stored(&self, object: Value) -> Result<Value, StorageError> {
        if object["apiVersion"] == *self.stored_version {
            return Ok(object);
        }
        let converter = self.shown.converter();
        let converted = converter.convert(vec![object], &self.stored_version).await;
        let mut stored = only(converted.map_err(failed)?)?;
        if let Some(resource) = &self.stored_resource {
            resource.strategy.default(&mut stored);
        }
        Ok(stored)
    }
}

/// Returns the one object of a conversion of one.
fn only(mut converted: Vec<Value>) -> Result<Value, StorageError> {
    converted
        .pop()
        .ok_or_else(|| internal("nothing was converted"))
}

/// An update of an object in the shown version.
struct ShownUpdate<'a> {
    storage: &'a ConvertedStorage,
    update: &'a mut dyn TryUpdate,
}

#[async_trait]
impl TryUpdate for ShownUpdate<'_> {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<Updated, Rejection> {
        let shown = match existing {
            Some(existing) => {
                let existing = Arc::new(existing.clone());
                Some(self.storage.shown.object(&existing).await?)
            }
            None => None,
        };
        let updated = self.update.try_update(shown.as_deref()).await?;
        Ok(Updated {
            object: self.storage.stored(updated.object).await?,
            ttl: updated.ttl,
        })
    }
}

/// A check of an object in the shown version.
struct ShownCheck<'a> {
    storage: &'a ConvertedStorage,
    check: &'a mut dyn DeletionCheck,
}

#[async_trait]
impl DeletionCheck for ShownCheck<'_> {
    async fn check(&mut self, existing: &Object) -> Result<(), Rejection> {
        let existing = Arc::new(existing.clone());
        let shown = self.storage.shown.object(&existing).await?;
        self.check.check(&shown).await
    }
}

#[async_trait]
impl Interface for ConvertedStorage {
    fn versioner(&self) -> &Versioner {
        self.inner.versioner()
    }

    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        let stored = self.stored(object.clone()).await?;
        let created = self.inner.create(key, &stored, ttl).await?;
        self.shown.object(&created).await
    }

    async fn delete(
        &self,
        key: &str,
        mut options: DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        // It is shown, not stored.
        options.cached_existing = None;
        let mut check = ShownCheck {
            storage: self,
            check,
        };
        let deleted = self.inner.delete(key, options, &mut check).await?;
        self.shown.object(&deleted).await
    }

    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError> {
        let selection = Arc::new(Selection::new(&options.predicate));
        let options = ListOptions {
            predicate: selection.stored().clone(),
            with_previous: selection.looks_at_content(),
            ..options
        };
        let stream = self.inner.watch(key, options).await?;
        let shown = Arc::clone(&self.shown);
        let converted = stream::unfold(Some(stream), move |stream| {
            let (shown, selection) = (Arc::clone(&shown), Arc::clone(&selection));
            async move {
                let mut stream = stream?;
                loop {
                    let shown = match stream.next().await? {
                        Ok(event) => shown.event(event, &selection).await,
                        Err(error) => Err(error),
                    };
                    match shown {
                        Ok(Some(event)) => return Some((Ok(event), Some(stream))),
                        Ok(None) => {}
                        // An error is the last item, whoever makes it.
                        Err(error) => return Some((Err(error), None)),
                    }
                }
            }
        });
        Ok(converted.boxed())
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        let object = self.inner.get(key, options).await?;
        self.shown.object(&object).await
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        let list = ConvertedList::new(self.inner.as_ref(), &self.shown, key, &options);
        list.read().await
    }

    async fn guaranteed_update(
        &self,
        key: &str,
        mut options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        // It is shown, not stored.
        options.cached_existing = None;
        let mut update = ShownUpdate {
            storage: self,
            update,
        };
        let updated = self
            .inner
            .guaranteed_update(key, options, &mut update)
            .await?;
        self.shown.object(&updated).await
    }

    async fn stats(&self) -> Result<Stats, StorageError> {
        self.inner.stats().await
    }

    fn readiness_check(&self) -> Result<(), StorageError> {
        self.inner.readiness_check()
    }

    async fn request_watch_progress(&self) -> Result<(), StorageError> {
        self.inner.request_watch_progress().await
    }

    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError> {
        self.inner.current_resource_version().await
    }

    fn compact_revision(&self) -> u64 {
        self.inner.compact_revision()
    }
}
