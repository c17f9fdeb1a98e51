//! A storage whose objects are written in one version and read in another.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::{
    Delegate, DeleteOptions, DeletionCheck, GetOptions, Interface, List, ListOptions, NextContent,
    Rejection, StorageError, TryUpdate, UpdateOptions, WatchStream,
};
use ringwatch_registry::Resource;
use serde_json::Value;

use super::converter::Converter;
use super::list::ConvertedList;
use super::selection::Selection;
use super::served_version::{ServedVersion, failed, internal};
use super::shared_conversions::SharedConversions;
use super::watch::ConvertedWatch;

/// Shows the objects of a storage as a resource is served.
#[derive(Debug)]
pub struct ConvertedStorage {
    inner: Arc<dyn Interface>,
    shown: Arc<ServedVersion>,
    /// The version in which new content is written.
    stored_version: String,
}

impl ConvertedStorage {
    /// Makes the storage as this resource is served. `conversions` keeps for a while, and counts, all that is converted
    /// for watches.
    #[must_use]
    pub fn new(
        inner: Arc<dyn Interface>,
        converter: Converter,
        resource: Arc<Resource>,
        conversions: &SharedConversions,
    ) -> Self {
        let shared = conversions.of_version();
        Self {
            inner,
            stored_version: resource.storage_version.to_string(),
            shown: Arc::new(ServedVersion::new(converter, resource, shared)),
        }
    }

    /// Returns true if objects are written in the version in which they are served.
    fn stores_as_served(&self) -> bool {
        self.stored_version == self.shown.name()
    }

    /// Returns the object in the storage version.
    async fn stored(&self, object: Value) -> Result<Value, StorageError> {
        if object["apiVersion"] == *self.stored_version {
            return Ok(object);
        }
        let converter = self.shown.converter();
        let converted = converter.convert(vec![object], &self.stored_version).await;
        only(converted.map_err(failed)?)
    }

    /// Returns what was stored, at a revision, as it is read from now on: with the defaults of its version, such as
    /// those of a status that was dropped on creation.
    async fn as_read(&self, mut stored: Value, revision: u64) -> Result<Arc<Object>, StorageError> {
        self.shown.converter().complete(&mut stored);
        let read = self.inner.preview(&stored, revision).await?;
        self.shown.object(&read).await
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
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let updated = match existing {
            Some(existing) if !self.storage.shown.is_served_as_stored(existing) => {
                let existing = Arc::new(existing.clone());
                let shown = self.storage.shown.object(&existing).await?;
                self.update.try_update(Some(&shown)).await?
            }
            existing => self.update.try_update(existing).await?,
        };
        Ok(NextContent {
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
        if self.storage.shown.is_served_as_stored(existing) {
            return self.check.check(existing).await;
        }
        let existing = Arc::new(existing.clone());
        let shown = self.storage.shown.object(&existing).await?;
        self.check.check(&shown).await
    }
}

#[async_trait]
impl Delegate for ConvertedStorage {
    fn inner(&self) -> &dyn Interface {
        &*self.inner
    }

    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        let stored = self.stored(object.clone()).await?;
        let created = self.inner.create(key, &stored, ttl).await?;
        self.as_read(stored, created.revision()).await
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
        let changes_content = self.shown.converter().changes_content();
        let selection = Selection::new(&options.predicate, changes_content);
        let options = ListOptions {
            predicate: selection.stored().clone(),
            with_previous: selection.looks_at_content(),
            ..options
        };
        let stored = self.inner.watch(key, options).await?;
        let converted = ConvertedWatch::new(stored, Arc::clone(&self.shown), selection);
        Ok(WatchStream::new(converted))
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
        if self.stores_as_served() {
            // It was given its defaults before it was written.
            return self.shown.object(&updated).await;
        }
        let stored = codec::tree(&updated).map_err(internal)?;
        self.as_read(stored, updated.revision()).await
    }

    async fn preview(&self, object: &Value, revision: u64) -> Result<Arc<Object>, StorageError> {
        let stored = self.stored(object.clone()).await?;
        self.as_read(stored, revision).await
    }
}
