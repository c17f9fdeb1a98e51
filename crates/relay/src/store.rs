//! The objects of one resource of the upstream, asked for there one request at a time.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream;
use http_body_util::BodyExt;
use ringwatch::meta::{Object, ResourceVersion, ShardSelector, WatchEvent};
use ringwatch::storage::{
    DeleteOptions, DeletionCheck, GetOptions, Interface, List, ListOptions, Stats, StorageError,
    TryUpdate, UpdateOptions, Versioner, WatchStream, corrupt_object,
};
use ringwatch_http::ResponseBody;
use serde_json::Value;

use super::event::{EventKind, UpstreamEvent};
use super::frames::Frames;
use super::moments::Moments;
use super::object_head::object_head;
use super::query::Query;
use super::refusal::{Refusal, RefusedRequest};
use super::remote::Remote;
use super::resource::{ResourcePath, ResourceType};
use super::upstream::{StreamAnswer, Upstream};

/// One resource of an upstream as a store. Its continue tokens and versions are the upstream's.
///
/// Writes are those of the upstream's API, so it may change what it is given (names of owners, defaults, times), and
/// objects get no time to live. An update is one of the object itself, not of a subresource.
#[derive(Clone, Debug)]
pub struct UpstreamStore {
    pub(crate) remote: Remote,
    versioner: Versioner,
    /// The lists that several readers share.
    moments: Arc<Moments>,
}

/// A watch of the upstream on behalf of one watcher.
struct UpstreamWatch {
    store: UpstreamStore,
    body: ResponseBody,
    frames: Frames,
}

impl UpstreamStore {
    /// Creates the store of a resource of an upstream, whose objects are read by `versioner`.
    #[must_use]
    pub fn new(upstream: Arc<Upstream>, resource: ResourceType, versioner: Versioner) -> Self {
        Self {
            remote: Remote {
                upstream,
                resource: Arc::new(resource),
            },
            versioner,
            moments: Arc::default(),
        }
    }

    /// Reads a list, or a page of one.
    async fn list(
        &self,
        place: ResourcePath<'_>,
        query: Query,
        options: &ListOptions,
    ) -> Result<List, StorageError> {
        let continued = !options.predicate.continue_token.is_empty();
        let (page, mut memory) = self.remote.list(place.namespace, query, continued).await?;
        let mut items = Vec::with_capacity(page.items.len());
        let mut bytes = 0;
        for (head, item) in page.items {
            bytes += item.len() as u64;
            items.push(self.object_at(item, &head.namespace, &head.name, head.revision)?);
        }
        memory.set(bytes);
        let token = page.continue_token;
        Ok(List {
            revision: page.revision,
            items,
            shard: ShardSelector::default(),
            continue_token: (!token.is_empty()).then_some(token),
            remaining_item_count: page.remaining,
            corrupt: Vec::new(),
            memory: Some(Arc::new(memory)),
        })
    }

    /// Reads an object, whose bytes have its version.
    pub(crate) fn object(&self, bytes: bytes::Bytes) -> Result<Arc<Object>, StorageError> {
        let head = object_head(&bytes)?;
        self.object_at(bytes, &head.namespace, &head.name, head.revision)
    }

    fn object_at(
        &self,
        bytes: bytes::Bytes,
        namespace: &str,
        name: &str,
        revision: u64,
    ) -> Result<Arc<Object>, StorageError> {
        let object = self.versioner.update_object(bytes, revision);
        object.map(Arc::new).map_err(|error| {
            let key = self.remote.resource.key(namespace, name);
            let why = corrupt_object(&key, &error.to_string());
            StorageError::Corrupt {
                keys: vec![(key, why)],
            }
        })
    }

    fn event(&self, event: UpstreamEvent) -> Result<WatchEvent, StorageError> {
        match event {
            UpstreamEvent::Failed(refusal) => Err(refusal.error(RefusedRequest::Watch)),
            UpstreamEvent::Bookmark(head) => Ok(WatchEvent::Bookmark {
                revision: head.revision,
                initial_events_end: head.ends_initial_events,
            }),
            UpstreamEvent::Object(kind, head, bytes) => {
                let object = self.object_at(bytes, &head.namespace, &head.name, head.revision)?;
                Ok(match kind {
                    EventKind::Added => WatchEvent::Added(object),
                    EventKind::Modified => WatchEvent::Modified(object),
                    EventKind::Deleted => WatchEvent::Deleted(object),
                })
            }
        }
    }
}

impl UpstreamWatch {
    /// Returns the next event; `None` at the end.
    async fn next_event(&mut self) -> Option<Result<WatchEvent, StorageError>> {
        loop {
            match self.frames.next_frame() {
                Ok(Some(frame)) => {
                    let event = UpstreamEvent::decode(&frame, self.frames.is_protobuf());
                    return Some(
                        event
                            .map_err(Into::into)
                            .and_then(|it| self.store.event(it)),
                    );
                }
                Ok(None) => {}
                Err(error) => return Some(Err(error.into())),
            }
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Some(data) = frame.data_ref() {
                        self.frames.push(data);
                    }
                }
                Err(error) => {
                    let message = format!("a watch of the upstream broke: {error}");
                    return Some(Err(StorageError::Unreachable { message }));
                }
            }
        }
    }
}

/// Returns the error of a request for something that the API of an upstream does not have.
pub(crate) fn unsupported(what: &str) -> StorageError {
    StorageError::Internal {
        message: format!("the API of an upstream cannot {what}"),
    }
}

/// Returns what a shard has of a list. An upstream may not know shards, so it is asked for all of them.
fn of_shard(mut list: List, shard: &ShardSelector) -> List {
    if shard.is_empty() {
        return list;
    }
    list.items
        .retain(|object| shard.matches(object.attributes()));
    list.shard = shard.clone();
    // The upstream counts those of all shards.
    list.remaining_item_count = None;
    list
}

#[async_trait]
impl Interface for UpstreamStore {
    fn versioner(&self) -> &Versioner {
        &self.versioner
    }

    async fn create(
        &self,
        key: &str,
        object: &Value,
        ttl: Option<u64>,
    ) -> Result<Arc<Object>, StorageError> {
        self.create_upstream(key, object, ttl).await
    }

    async fn delete(
        &self,
        key: &str,
        options: DeleteOptions,
        check: &mut dyn DeletionCheck,
    ) -> Result<Arc<Object>, StorageError> {
        self.delete_upstream(key, options, check).await
    }

    async fn watch(&self, key: &str, options: ListOptions) -> Result<WatchStream, StorageError> {
        let place = self.remote.resource.place(key, options.recursive)?;
        if options.with_previous {
            return Err(unsupported("tell what objects were before"));
        }
        if !options.predicate.shard.is_empty() {
            return Err(unsupported("watch a shard"));
        }
        let query = Query::watch(&options, place.name);
        let (body, is_protobuf) = match self.remote.watch(place.namespace, query).await? {
            StreamAnswer::Stream(body, is_protobuf) => (body, is_protobuf),
            StreamAnswer::Refused(answer) => {
                let error = Refusal::answer(&answer).error(RefusedRequest::Watch);
                let expired = matches!(error, StorageError::WatchExpired);
                return match expired {
                    true => Ok(WatchStream::new(stream::iter([Err(error)]))),
                    false => Err(error),
                };
            }
        };
        let watched = UpstreamWatch {
            store: self.clone(),
            body,
            frames: Frames::new(is_protobuf),
        };
        let events = stream::unfold(Some(watched), |watched| async move {
            let mut watched = watched?;
            match watched.next_event().await? {
                Ok(event) => Some((Ok(event), Some(watched))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(WatchStream::new(events))
    }

    async fn get(&self, key: &str, options: GetOptions) -> Result<Arc<Object>, StorageError> {
        let resource = &self.remote.resource;
        let place = resource.object(key)?;
        let query = Query::new().with_some("resourceVersion", options.resource_version);
        let path = query.after(&resource.path(place));
        let answer = self.remote.upstream.get(&path, resource.accept()).await?;
        if !answer.status.is_success() {
            return Err(Refusal::answer(&answer).error(RefusedRequest::Object(key)));
        }
        self.object(answer.body)
    }

    async fn get_list(&self, key: &str, options: ListOptions) -> Result<List, StorageError> {
        let place = self.remote.resource.place(key, options.recursive)?;
        let continued = !options.predicate.continue_token.is_empty();
        let version = options.resource_version.unwrap_or_default();
        if continued && !version.is_any() {
            return Err(StorageError::ContinueWithVersion);
        }
        let query = Query::list(&options, place.name);
        if options.resource_version.is_some() || continued {
            let list = self.list(place, query, &options).await?;
            return Ok(of_shard(list, &options.predicate.shard));
        }
        let path = query.clone().after(&self.remote.resource.path(place));
        let list = self.list(place, query, &options);
        let list = self.moments.list(&path, list).await?;
        Ok(of_shard(list, &options.predicate.shard))
    }

    async fn guaranteed_update(
        &self,
        key: &str,
        options: UpdateOptions,
        update: &mut dyn TryUpdate,
    ) -> Result<Arc<Object>, StorageError> {
        self.update_upstream(key, options, update).await
    }

    /// Returns the number of objects, and the size of the first one for all of them.
    async fn stats(&self) -> Result<Stats, StorageError> {
        let query = Query::new().with("limit", 1);
        let (page, _memory) = self.remote.list(None, query, false).await?;
        let Some((head, bytes)) = page.items.into_iter().next() else {
            return Ok(Stats::default());
        };
        let object = self.object_at(bytes, &head.namespace, &head.name, head.revision)?;
        Ok(Stats {
            object_count: 1 + page.remaining.unwrap_or_default(),
            estimated_average_object_size_bytes: object.stored().len() as u64,
        })
    }

    fn readiness_check(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Does nothing: an API server sends bookmarks when it likes.
    async fn request_watch_progress(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn current_resource_version(&self) -> Result<ResourceVersion, StorageError> {
        Ok(ResourceVersion(self.remote.current_revision().await?))
    }

    /// Returns 0: an upstream does not say what it has compacted.
    fn compact_revision(&self) -> u64 {
        0
    }
}
