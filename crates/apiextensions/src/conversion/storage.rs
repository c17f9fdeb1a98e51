//! A storage whose objects are written in one version and read in another.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion, WatchEvent};
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, GetOptions, Interface, List, ListOptions, Rejection, Stats,
    StorageError, TryUpdate, UpdateOptions, Updated, Versioner, WatchStream,
};
use ringwatch_registry::Resource;
use serde_json::Value;

use super::{Converter, NotConverted};

/// Bytes of stored objects that are converted at once, unless one alone is longer.
const BATCH_BYTES_MAX: usize = 1 << 20;

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

/// The version in which objects are shown.
#[derive(Debug)]
struct ServedVersion {
    converter: Converter,
    resource: Arc<Resource>,
    version: String,
}

impl ConvertedStorage {
    /// Makes the storage as this resource is served; `stored_resource` is that of the stored version, if it is served.
    #[must_use]
    pub fn new(
        inner: Arc<dyn Interface>,
        converter: Converter,
        resource: Arc<Resource>,
        stored_resource: Option<Arc<Resource>>,
    ) -> Self {
        Self {
            stored_resource,
            inner,
            stored_version: resource.storage_version.to_string(),
            shown: Arc::new(ServedVersion {
                version: resource.group_version.to_string(),
                converter,
                resource,
            }),
        }
    }

    /// Returns the object in the storage version.
    async fn stored(&self, object: Value) -> Result<Value, StorageError> {
        if object["apiVersion"] == *self.stored_version {
            return Ok(object);
        }
        let converter = &self.shown.converter;
        let converted = converter.convert(vec![object], &self.stored_version).await;
        let mut stored = only(converted.map_err(failed)?)?;
        if let Some(resource) = &self.stored_resource {
            resource.strategy.default(&mut stored);
        }
        Ok(stored)
    }
}

impl ServedVersion {
    async fn object(&self, object: &Arc<Object>) -> Result<Arc<Object>, StorageError> {
        let mut objects = vec![Arc::clone(object)];
        self.objects(&mut objects).await?;
        Ok(objects.swap_remove(0))
    }

    /// Replaces objects by what they are in the version that is served, those of another together.
    async fn objects(&self, objects: &mut [Arc<Object>]) -> Result<(), StorageError> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        for index in 0..objects.len() {
            let value = tree(&objects[index])?;
            if value["apiVersion"] == *self.version {
                continue;
            }
            let length = objects[index].stored().len();
            if bytes + length > BATCH_BYTES_MAX && !batch.is_empty() {
                self.replace(objects, std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += length;
            batch.push((index, value));
        }
        self.replace(objects, batch).await
    }

    async fn replace(
        &self,
        objects: &mut [Arc<Object>],
        batch: Vec<(usize, Value)>,
    ) -> Result<(), StorageError> {
        let (places, values): (Vec<usize>, Vec<Value>) = batch.into_iter().unzip();
        let converted = self.converter.convert(values, &self.version).await;
        for (place, mut value) in places.into_iter().zip(converted.map_err(failed)?) {
            self.resource.strategy.default(&mut value);
            let revision = objects[place].revision();
            let object = Object::from_value(&value, revision, &self.resource.schema);
            objects[place] = Arc::new(object.map_err(internal)?);
        }
        Ok(())
    }

    async fn event(&self, event: WatchEvent) -> Result<WatchEvent, StorageError> {
        Ok(match event {
            WatchEvent::Added(object) => WatchEvent::Added(self.object(&object).await?),
            WatchEvent::Modified(object) => WatchEvent::Modified(self.object(&object).await?),
            WatchEvent::Deleted(object) => WatchEvent::Deleted(self.object(&object).await?),
            bookmark @ WatchEvent::Bookmark { .. } => bookmark,
        })
    }
}

fn tree(object: &Object) -> Result<Value, StorageError> {
    codec::tree(object).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> StorageError {
    StorageError::Internal {
        message: error.to_string(),
    }
}

fn failed(error: NotConverted) -> StorageError {
    internal(error)
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
        let stream = self.inner.watch(key, options).await?;
        let shown = Arc::clone(&self.shown);
        let stream = stream.then(move |event| {
            let shown = Arc::clone(&shown);
            async move {
                match event {
                    Ok(event) => shown.event(event).await,
                    Err(error) => Err(error),
                }
            }
        });
        // An error is the last item, whoever makes it.
        let until_error = stream.scan(false, |over, event| {
            let event = (!*over).then_some(event);
            *over |= matches!(event, Some(Err(_)));
            std::future::ready(event)
        });
        Ok(until_error.boxed())
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        let object = self.inner.get(key, options).await?;
        self.shown.object(&object).await
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        let mut list = self.inner.get_list(key, options).await?;
        self.shown.objects(&mut list.items).await?;
        Ok(list)
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
