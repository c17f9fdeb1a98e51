//! The changes of a resource, out of a watch of the upstream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use http_body_util::BodyExt;
use ringwatch::clock::Clock;
use ringwatch::storage::{Change, ChangeBatch, ChangeKind, ChangeStream, StorageError};
use ringwatch_apiserver::endpoints::ResponseBody;

use super::event::{EventKind, UpstreamEvent};
use super::frames::Frames;
use super::order::{Deletions, Order};
use super::refusal::Asked;
use super::resource::ResourceType;

/// Maximum time in which nothing comes, before the watch is taken for dead: several times that between the bookmarks of API servers.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Maximum time for which a deletion is kept back, since others at the same version may follow.
const SIBLINGS_WAIT: Duration = Duration::from_millis(5);

/// The part of a resource's watches that outlives each of them.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// The deletions at the newest version that was given away.
    pub(crate) deletions: Deletions,
    /// The number of watches that ended out of order since one ended as it should.
    pub(crate) faults: u32,
}

/// A watch of the upstream.
pub(crate) struct Watch {
    pub(crate) resource: Arc<ResourceType>,
    pub(crate) clock: Clock,
    pub(crate) body: ResponseBody,
    pub(crate) frames: Frames,
    pub(crate) order: Order,
    pub(crate) followed: Arc<Mutex<Followed>>,
    /// The end of the watch, which is told after the changes before it.
    pub(crate) end: Option<End>,
}

/// The way in which a watch has ended.
pub(crate) enum End {
    /// As the upstream ends each some time.
    Closed,
    /// By an error.
    Failed(StorageError),
}

impl Watch {
    /// Returns the changes in batches, each with all that has come at the time.
    pub(crate) fn into_changes(self) -> ChangeStream {
        let batches = stream::unfold(Some(self), |watch| async move {
            let mut watch = watch?;
            match watch.next_batch().await? {
                Ok(batch) => Some((Ok(batch), Some(watch))),
                Err(error) => Some((Err(error), None)),
            }
        });
        batches.boxed()
    }

    /// Returns the next batch; `None` at the end.
    async fn next_batch(&mut self) -> Option<Result<ChangeBatch, StorageError>> {
        let mut changes = Vec::new();
        loop {
            if self.end.is_none()
                && let Err(error) = self.take_frames(&mut changes)
            {
                self.end = Some(End::Failed(error));
            }
            let ready = self.order.has_come() && !self.order.may_go_on();
            if ready || (self.end.is_some() && self.order.has_come()) {
                return Some(Ok(self.give(changes)));
            }
            match self.end.take() {
                None => {}
                Some(End::Closed) => {
                    self.followed().faults = 0;
                    return None;
                }
                Some(End::Failed(error)) => return Some(Err(error)),
            }
            let wait = match self.order.has_come() {
                true => SIBLINGS_WAIT,
                false => SILENCE_MAX,
            };
            let read = self.clock.timeout(wait, self.body.frame()).await;
            match read {
                Ok(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        self.frames.push(data);
                    }
                }
                Ok(None) => self.end = Some(End::Closed),
                Ok(Some(Err(error))) => {
                    let message = format!("a watch of the upstream broke: {error}");
                    self.end = Some(End::Failed(StorageError::Unreachable { message }));
                }
                Err(_) if self.order.has_come() => return Some(Ok(self.give(changes))),
                Err(_) => {
                    let message = format!("nothing came for {} s", SILENCE_MAX.as_secs());
                    self.end = Some(End::Failed(StorageError::Timeout { message }));
                }
            }
        }
    }

    /// Decodes the frames that have come whole.
    fn take_frames(&mut self, changes: &mut Vec<Change>) -> Result<(), StorageError> {
        while let Some(frame) = self.frames.next_frame()? {
            match UpstreamEvent::decode(&frame, self.frames.is_protobuf())? {
                UpstreamEvent::Bookmark(head) => self.order.bookmark(head.revision),
                UpstreamEvent::Failed(refusal) => return Err(refusal.error(Asked::Watch)),
                UpstreamEvent::Object(kind, head, bytes) => {
                    let key = self.resource.key(&head.namespace, &head.name);
                    let is_deletion = kind == EventKind::Deleted;
                    let taken = self.order.event(head.revision, &key, is_deletion);
                    match taken {
                        Ok(false) => continue,
                        Ok(true) => {}
                        Err(error) => return Err(self.out_of_order(&error)),
                    }
                    let kind = match kind {
                        EventKind::Deleted => ChangeKind::Delete,
                        other => ChangeKind::Put {
                            value: bytes,
                            created: other == EventKind::Added,
                        },
                    };
                    changes.push(Change {
                        key,
                        revision: head.revision,
                        kind,
                    });
                }
            }
        }
        Ok(())
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error that has the resource listed again.
    fn out_of_order(&self, error: &dyn std::error::Error) -> StorageError {
        let resource = &self.resource.resource;
        tracing::error!(%error, resource, "the upstream's watch cannot be relied on");
        let mut followed = self.followed();
        followed.faults = followed.faults.saturating_add(1);
        StorageError::WatchExpired
    }

    fn give(&mut self, changes: Vec<Change>) -> ChangeBatch {
        let revision = self.order.give();
        self.followed().deletions = self.order.deletions().clone();
        ChangeBatch { changes, revision }
    }
}
