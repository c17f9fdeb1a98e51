//! The raw objects and the changes of all types under a prefix, for a cache.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;

use super::request_metrics::{BackendOperation, TypeRequestMetrics};
use crate::storage::backend::{
    Backend, BackendError, Event, EventKind, KeyRange, KeyValue, RangeContent, RangeRequest,
    WatchRequest, WatchResponse, prefix_end,
};
use crate::storage::encryption::{ENCRYPTED, Encryption, TransformError, Transformer};
use crate::storage::{
    Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, RawObject,
    StorageError,
};

/// A backend's keys under one path prefix as a source of changes.
///
/// One watch serves all types. It does not request the previous values, which the cache has.
#[derive(Clone, Debug)]
pub struct Changes {
    backend: Arc<dyn Backend>,
    path_prefix: Arc<str>,
    /// The request metrics of types, which count pages, by the part of their keys after the path prefix.
    types: Arc<BTreeMap<String, TypeRequestMetrics>>,
    /// The transformers of types, by the same part of their keys.
    transformers: Arc<BTreeMap<String, Transformer>>,
    /// The encryption of other types, whose keys begin with group and resource.
    encryption: Encryption,
}

impl Changes {
    /// Creates the source of the changes under a path prefix, which is that of [`super::Config`].
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, path_prefix: &str) -> Self {
        Self {
            backend,
            path_prefix: path_prefix.into(),
            types: Arc::default(),
            transformers: Arc::default(),
            encryption: Encryption::default(),
        }
    }

    /// Returns this source with the metrics of the types whose pages are to be counted: by the part of a type's keys
    /// after the path prefix, up to a slash.
    #[must_use]
    pub fn counted(self, types: BTreeMap<String, TypeRequestMetrics>) -> Self {
        Self {
            types: Arc::new(types),
            ..self
        }
    }

    /// Returns this source with decryption: `types` are the transformers by the part of a type's keys after the path
    /// prefix, up to a slash. `others` has the transformers of all other types, such as custom resources, whose keys
    /// begin with group and resource.
    #[must_use]
    pub fn decrypting(self, types: BTreeMap<String, Transformer>, others: Encryption) -> Self {
        Self {
            transformers: Arc::new(types),
            encryption: others,
            ..self
        }
    }

    /// Returns the transformer of the values of a key.
    fn transformer(&self, key: &str) -> Transformer {
        let folders = key.match_indices('/').map(|(at, _)| &key[..=at]);
        if let Some(found) = folders.rev().find_map(|it| self.transformers.get(it)) {
            return found.clone();
        }
        let mut segments = key.split('/').skip(1);
        let group = segments.next().unwrap_or_default();
        let resource = segments.next().unwrap_or_default();
        self.encryption.transformer(resource, group)
    }

    /// Decrypts a value. One that no provider can decrypt, including a plain value of a type that must be encrypted, is
    /// replaced by bytes that are not an object, and so is reported as unreadable.
    ///
    /// # Errors
    /// [`StorageError::Internal`] when a KMS plugin does not decrypt the key of the value now.
    fn plain(&self, full_key: &str, value: Bytes) -> Result<Bytes, StorageError> {
        if self.is_plain(&value) {
            return Ok(value);
        }
        let opened = self.transformer_of(full_key).open(&value, full_key);
        plain(full_key, opened)
    }

    /// Returns true if a value is not encrypted and none has to be.
    fn is_plain(&self, value: &[u8]) -> bool {
        self.encryption.is_empty() && !value.starts_with(ENCRYPTED)
    }

    /// Decrypts a value as [`Self::plain`] does. A KMS plugin is asked for the key of the value if that is not known.
    async fn decrypted(&self, full_key: &str, value: Bytes) -> Result<Bytes, StorageError> {
        if !value.starts_with(ENCRYPTED) {
            return self.plain(full_key, value);
        }
        let transformer = self.transformer_of(full_key);
        let reader = transformer.reader(iter::once(&value)).await;
        plain(full_key, reader.open(&value, full_key))
    }

    fn transformer_of(&self, full_key: &str) -> Transformer {
        let key = full_key.strip_prefix(&*self.path_prefix);
        self.transformer(key.unwrap_or(full_key))
    }

    /// Returns the part of a full key after the path prefix.
    fn key(&self, full: &str) -> String {
        let key = full.strip_prefix(&*self.path_prefix).unwrap_or(full);
        key.to_owned()
    }

    /// Converts an event. Its value is moved: a clone would give bytes that nobody else has a count of references for
    /// good.
    fn change(&self, event: Event) -> Change {
        let KeyValue {
            key,
            value,
            create_revision,
            mod_revision,
            ..
        } = event.kv;
        let created = create_revision == mod_revision;
        let kind = match event.kind {
            EventKind::Put if self.is_plain(&value) => ChangeKind::Put { value, created },
            EventKind::Put => match self.plain(&key, value.clone()) {
                Ok(value) => ChangeKind::Put { value, created },
                // The stream is that of all types, which do not wait for the plugin of one.
                Err(_) => ChangeKind::Encrypted { value, created },
            },
            EventKind::Delete => ChangeKind::Delete,
        };
        Change {
            key: self.key(&key),
            revision: mod_revision,
            kind,
        }
    }

    /// Converts a response. One with events covers the revisions up to that of its last event, one without up to its
    /// own.
    fn batch(&self, response: WatchResponse) -> ChangeBatch {
        let last = response.events.last().map(|event| event.kv.mod_revision);
        ChangeBatch {
            revision: last.unwrap_or(response.revision),
            changes: response
                .events
                .into_iter()
                .map(|event| self.change(event))
                .collect(),
        }
    }
}

/// Returns the outcome of decrypting a value, see [`Changes::plain`].
fn plain(
    full_key: &str,
    opened: Result<(Bytes, bool), TransformError>,
) -> Result<Bytes, StorageError> {
    match opened {
        Ok((plain, _)) => Ok(plain),
        Err(TransformError::Unavailable(why)) => Err(StorageError::Internal {
            message: format!("the value of {full_key} cannot be decrypted now: {why}"),
        }),
        Err(error @ TransformError::Unreadable(_)) => Ok(unreadable(full_key, &error)),
    }
}

/// Returns bytes that stand for a value which cannot be decrypted.
fn unreadable(full_key: &str, error: &dyn std::error::Error) -> Bytes {
    tracing::error!(key = full_key, %error, "a stored value cannot be decrypted");
    Bytes::from_static(ENCRYPTED)
}

#[async_trait]
impl ChangeSource for Changes {
    async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        limit: u32,
    ) -> Result<ChangePage, StorageError> {
        let full = format!("{}{prefix}", self.path_prefix);
        let end = prefix_end(&full);
        let start = after.map_or(full, |after| format!("{}{after}\0", self.path_prefix));
        let request = RangeRequest {
            range: KeyRange::Span(start, end),
            revision,
            limit: limit.into(),
            content: RangeContent::Values,
        };
        let read = self.backend.range(request);
        let response = match self.types.get(prefix) {
            Some(requests) => requests.count(BackendOperation::List, read).await?,
            None => read.await?,
        };
        let mut items = Vec::with_capacity(response.kvs.len());
        for kv in response.kvs {
            items.push(RawObject {
                key: self.key(&kv.key),
                revision: kv.mod_revision,
                value: self.decrypted(&kv.key, kv.value).await?,
            });
        }
        Ok(ChangePage {
            revision: if revision == 0 {
                response.revision
            } else {
                revision
            },
            items,
            more: response.more,
        })
    }

    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError> {
        let request = WatchRequest {
            range: KeyRange::prefix(&format!("{}/", self.path_prefix)),
            start_revision: revision + 1,
            previous: false,
            progress: true,
        };
        let responses = self.backend.watch(request).await?;
        let changes = self.clone();
        let batches = responses.map(move |item| match item {
            Ok(response) => Ok(changes.batch(response)),
            Err(BackendError::Compacted { .. }) => Err(StorageError::WatchExpired),
            Err(other) => Err(other.into()),
        });
        Ok(batches.boxed())
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        Ok(self.backend.request_progress().await?)
    }

    async fn current_revision(&self) -> Result<u64, StorageError> {
        let request = RangeRequest {
            content: RangeContent::Count,
            ..RangeRequest::key(&*self.path_prefix)
        };
        Ok(self.backend.range(request).await?.revision)
    }

    async fn oldest_revision(&self) -> Result<u64, StorageError> {
        Ok(self.backend.oldest_revision().await?)
    }

    async fn has_written(&self, key: &str, revision: u64) -> Result<bool, StorageError> {
        let request = RangeRequest {
            revision,
            content: RangeContent::Keys,
            ..RangeRequest::key(format!("{}{key}", self.path_prefix))
        };
        match self.backend.range(request).await {
            Ok(read) => Ok(read.kvs.iter().any(|kv| kv.mod_revision == revision)),
            Err(BackendError::Compacted { .. }) => Ok(true),
            Err(BackendError::FutureRevision { .. }) => Ok(false),
            Err(other) => Err(other.into()),
        }
    }

    async fn decrypt(&self, key: &str, value: Bytes) -> Result<Bytes, StorageError> {
        let full_key = format!("{}{key}", self.path_prefix);
        self.decrypted(&full_key, value).await
    }

    fn progress_is_trusted(&self) -> bool {
        self.backend.progress_is_trusted()
    }
}
