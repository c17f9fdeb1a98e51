//! The version in which objects are served, and what stored objects and events are in it.

use std::sync::Arc;

use ringwatch::codec;
use ringwatch::meta::{Object, WatchEvent};
use ringwatch::storage::StorageError;
use ringwatch_offload::{LARGE_BYTES, Work, offload};
use ringwatch_registry::Resource;
use serde_json::Value;

use super::converter::Converter;
use super::selection::Selection;
use super::shared_conversions::VersionConversions;
use super::webhook::NotConverted;

/// Bytes of stored objects that are converted at once, unless one alone is longer.
pub(super) const BATCH_BYTES_MAX: usize = 1 << 20;

/// The version in which objects are served.
#[derive(Debug)]
pub(super) struct ServedVersion {
    converter: Converter,
    resource: Arc<Resource>,
    version: String,
    /// The conversions of events.
    shared: VersionConversions,
}

impl ServedVersion {
    /// Creates the version in which this resource is served.
    pub(super) fn new(
        converter: Converter,
        resource: Arc<Resource>,
        shared: VersionConversions,
    ) -> Self {
        Self {
            shared,
            version: resource.group_version.to_string(),
            converter,
            resource,
        }
    }

    /// Returns the conversion of its objects.
    pub(super) fn converter(&self) -> &Converter {
        &self.converter
    }

    /// Returns the resource that is served.
    pub(super) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Returns the version as objects name it.
    pub(super) fn name(&self) -> &str {
        &self.version
    }

    /// Returns true if an object is stored in this version, so that its bytes are served.
    pub(super) fn is_served_as_stored(&self, object: &Object) -> bool {
        object.is_written_in(&self.version)
    }

    /// Returns a stored object as it is served.
    pub(super) async fn object(&self, object: &Arc<Object>) -> Result<Arc<Object>, StorageError> {
        let mut objects = vec![Arc::clone(object)];
        self.objects(&mut objects).await?;
        Ok(objects.swap_remove(0))
    }

    /// Returns a stored object as all watches are served it.
    async fn watched(self: &Arc<Self>, object: &Arc<Object>) -> Result<Arc<Object>, StorageError> {
        if self.is_served_as_stored(object) {
            return Ok(Arc::clone(object));
        }
        let (shown, stored) = (Arc::clone(self), Arc::clone(object));
        let convert = async move { shown.object(&stored).await };
        self.shared.get_or_convert(object, convert).await
    }

    /// Replaces stored objects by what they are in the version that is served, those of another together.
    pub(super) async fn objects(&self, objects: &mut [Arc<Object>]) -> Result<(), StorageError> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        for index in 0..objects.len() {
            if self.is_served_as_stored(&objects[index]) {
                continue;
            }
            let length = objects[index].stored().len();
            if bytes + length > BATCH_BYTES_MAX && !batch.is_empty() {
                self.replace(objects, std::mem::take(&mut batch), bytes)
                    .await?;
                bytes = 0;
            }
            bytes += length;
            batch.push(index);
        }
        self.replace(objects, batch, bytes).await
    }

    /// Converts the objects of a batch, which have so many bytes.
    async fn replace(
        &self,
        objects: &mut [Arc<Object>],
        batch: Vec<usize>,
        bytes: usize,
    ) -> Result<(), StorageError> {
        if bytes > LARGE_BYTES {
            offload(Work::Object).await;
        }
        let values = batch.iter().map(|place| codec::tree(&objects[*place]));
        let values = values
            .collect::<Result<Vec<Value>, _>>()
            .map_err(internal)?;
        let converted = self.converter.convert(values, &self.version).await;
        for (place, value) in batch.into_iter().zip(converted.map_err(failed)?) {
            let revision = objects[place].revision();
            let object = Object::from_value(&value, revision, &self.resource.schema);
            objects[place] = Arc::new(object.map_err(internal)?);
        }
        Ok(())
    }

    /// Returns what a watch sees of an event about stored objects. `None` if it selects neither the object as it is nor
    /// as it was.
    pub(super) async fn event(
        self: &Arc<Self>,
        event: WatchEvent,
        selection: &Selection,
    ) -> Result<Option<WatchEvent>, StorageError> {
        Ok(match event {
            WatchEvent::Added(object) => {
                let object = self.watched(&object).await?;
                selection
                    .selects(&object)
                    .then(|| WatchEvent::Added(object))
            }
            WatchEvent::Modified(object) => {
                let object = self.watched(&object).await?;
                selection
                    .selects(&object)
                    .then(|| WatchEvent::Modified(object))
            }
            WatchEvent::Replaced { object, previous } => {
                let both = (self.watched(&previous), self.watched(&object));
                let (previous, object) = futures::try_join!(both.0, both.1)?;
                match [&previous, &object].map(|it| selection.selects(it)) {
                    [true, true] => Some(WatchEvent::Modified(object)),
                    [false, true] => Some(WatchEvent::Added(object)),
                    [true, false] => {
                        let removed = previous.at_revision(object.revision());
                        Some(WatchEvent::Deleted(Arc::new(removed)))
                    }
                    [false, false] => None,
                }
            }
            WatchEvent::Deleted(object) => {
                let object = self.watched(&object).await?;
                selection
                    .selects(&object)
                    .then(|| WatchEvent::Deleted(object))
            }
            bookmark @ WatchEvent::Bookmark { .. } => Some(bookmark),
        })
    }
}

/// Returns the error for something that can go wrong only in this program.
pub(super) fn internal(error: impl std::fmt::Display) -> StorageError {
    StorageError::Internal {
        message: error.to_string(),
    }
}

/// Returns the error for objects that cannot be converted.
pub(super) fn failed(error: NotConverted) -> StorageError {
    internal(error)
}
