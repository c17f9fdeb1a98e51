//! The changes of a resource, out of a watch of the upstream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use http_body_util::BodyExt;
use ringwatch::clock::{Clock, Elapsed, Instant};
use ringwatch::storage::{Change, ChangeBatch, ChangeKind, ChangeStream, StorageError};
use ringwatch_http::ResponseBody;

use super::event::{EventKind, UpstreamEvent};
use super::frames::Frames;
use super::order::{Deletions, Order};
use super::refusal::RefusedRequest;
use super::resource::ResourceType;

/// Maximum time in which nothing comes, before the watch is taken for dead: several times that between the bookmarks of
/// API servers.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Maximum time for which a deletion is kept back, since others at the same version may follow.
const SIBLINGS_WAIT: Duration = Duration::from_millis(5);

/// The longest pause after watches that ended out of order, and the time after which one that is in order has them
/// forgotten.
pub(crate) const FAULT_PAUSE_MAX: Duration = Duration::from_secs(60);

/// The part of a resource's watches that outlives each of them.
#[derive(Debug, Default)]
pub(crate) struct FollowedResource {
    /// The deletions at the newest version that was given away.
    pub(crate) deletions: Deletions,
    /// The number of watches that ended out of order since one ended as it should, or was in order for longer than any
    /// pause.
    pub(crate) faults: u32,
}

/// A watch of the upstream.
pub(crate) struct Watch {
    pub(crate) resource: Arc<ResourceType>,
    pub(crate) clock: Clock,
    pub(crate) body: ResponseBody,
    pub(crate) frames: Frames,
    pub(crate) order: Order,
    pub(crate) followed: Arc<Mutex<FollowedResource>>,
    /// The instant at which the watch was opened.
    pub(crate) opened: Instant,
    /// The changes that have come and have not been given away, in the order of their versions.
    pub(crate) kept: Vec<Change>,
    /// The version at which more deletions may follow, and until when they are waited for.
    pub(crate) siblings_until: Option<(u64, Instant)>,
    /// The end of the watch, which is told after the changes before it.
    pub(crate) end: Option<UpstreamEnd>,
}

/// The way in which a watch has ended.
pub(crate) enum UpstreamEnd {
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
        loop {
            if self.end.is_none()
                && let Err(error) = self.take_frames()
            {
                self.end = Some(UpstreamEnd::Failed(error));
            }
            if self.end.is_some() && self.order.has_come() {
                return Some(Ok(self.give()));
            }
            if let Some(whole) = self.order.give_whole() {
                return Some(Ok(self.give_up_to(whole)));
            }
            match self.end.take() {
                None => {}
                Some(UpstreamEnd::Closed) => {
                    self.followed().faults = 0;
                    return None;
                }
                Some(UpstreamEnd::Failed(error)) => {
                    if matches!(error, StorageError::WatchExpired) {
                        // The list that follows has all of their version, and the watch after it is not to be parted by
                        // them.
                        self.followed().deletions = Deletions::default();
                    }
                    return Some(Err(error));
                }
            }
            if self.read().await.is_err() {
                return Some(Ok(self.give()));
            }
        }
    }

    /// Reads the next piece, or notes the end.
    ///
    /// # Errors
    /// [`Elapsed`] when deletions have been kept back for long enough.
    async fn read(&mut self) -> Result<(), Elapsed> {
        let now = self.clock.now();
        let siblings_until = self.siblings_until(now);
        let wait = siblings_until.map_or(SILENCE_MAX, |it| it.saturating_duration_since(now));
        let read = self.clock.timeout(wait, self.body.frame()).await;
        if self.clock.now().saturating_duration_since(self.opened) > FAULT_PAUSE_MAX {
            // Whatever comes now: it was in order for that long.
            self.followed().faults = 0;
        }
        match read {
            Ok(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.frames.push(data);
                }
            }
            Ok(None) => self.end = Some(UpstreamEnd::Closed),
            Ok(Some(Err(error))) => {
                let message = format!("a watch of the upstream broke: {error}");
                self.end = Some(UpstreamEnd::Failed(StorageError::Unreachable { message }));
            }
            Err(elapsed) if siblings_until.is_some() => return Err(elapsed),
            Err(_) => {
                let message = format!("nothing came for {} s", SILENCE_MAX.as_secs());
                self.end = Some(UpstreamEnd::Failed(StorageError::Timeout { message }));
            }
        }
        Ok(())
    }

    /// Returns until when deletions are kept back; `None` if none are. The time begins with the first one at a version.
    fn siblings_until(&mut self, now: Instant) -> Option<Instant> {
        let revision = self.order.may_go_on();
        self.siblings_until = match (revision, self.siblings_until) {
            (Some(one), Some((other, until))) if one == other => Some((one, until)),
            (revision, _) => revision.map(|it| (it, now + SIBLINGS_WAIT)),
        };
        self.siblings_until.map(|(_, until)| until)
    }

    /// Decodes the frames that have come whole.
    fn take_frames(&mut self) -> Result<(), StorageError> {
        while let Some(frame) = self.frames.next_frame()? {
            match UpstreamEvent::decode(&frame, self.frames.is_protobuf())? {
                UpstreamEvent::Bookmark(head) => self.order.bookmark(head.revision),
                UpstreamEvent::Failed(refusal) => return Err(refusal.error(RefusedRequest::Watch)),
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
                    self.kept.push(Change {
                        key,
                        revision: head.revision,
                        kind,
                    });
                }
            }
        }
        Ok(())
    }

    fn followed(&self) -> MutexGuard<'_, FollowedResource> {
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

    /// Gives away all that has come.
    fn give(&mut self) -> ChangeBatch {
        let revision = self.order.give();
        self.give_up_to(revision)
    }

    fn give_up_to(&mut self, revision: u64) -> ChangeBatch {
        self.followed().deletions = self.order.given_deletions();
        let given = self.kept.partition_point(|it| it.revision <= revision);
        let later = self.kept.split_off(given);
        let changes = std::mem::replace(&mut self.kept, later);
        ChangeBatch { changes, revision }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::FutureExt;
    use futures::channel::mpsc;
    use jiff::Timestamp;
    use ringwatch_http::streamed;

    use super::*;

    /// Maximum number of pieces on their way.
    const PIECES_MAX: usize = 8;

    struct Upstream {
        clock: Clock,
        pieces: mpsc::Sender<Bytes>,
        followed: Arc<Mutex<FollowedResource>>,
        changes: ChangeStream,
    }

    impl Upstream {
        /// Opens a watch after version 10.
        fn open() -> Self {
            let clock = Clock::manual(Timestamp::UNIX_EPOCH);
            let (pieces, received) = mpsc::channel(PIECES_MAX);
            let followed: Arc<Mutex<FollowedResource>> = Arc::default();
            let watch = Watch {
                resource: Arc::new(ResourceType {
                    group: "example.com".to_owned(),
                    version: "v1".to_owned(),
                    resource: "things".to_owned(),
                    kind: "Thing".to_owned(),
                    is_namespaced: false,
                    prefix: "/things/".to_owned(),
                }),
                opened: clock.now(),
                clock: clock.clone(),
                body: streamed(received.map(Ok)),
                frames: Frames::new(false),
                order: Order::new(10, Deletions::default()),
                followed: Arc::clone(&followed),
                kept: Vec::new(),
                siblings_until: None,
                end: None,
            };
            Self {
                clock,
                pieces,
                followed,
                changes: watch.into_changes(),
            }
        }

        fn send(&mut self, events: &[(&str, &str, u64)]) {
            let lines = events.iter().map(|(kind, name, revision)| {
                let metadata = format!(r#"{{"name":"{name}","resourceVersion":"{revision}"}}"#);
                format!("{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{metadata}}}}}\n")
            });
            let piece: String = lines.collect();
            self.pieces.try_send(piece.into()).unwrap();
        }

        /// Returns the version of the batch that is there, and its keys; `None` if there is none.
        fn batch(&mut self) -> Option<(u64, Vec<String>)> {
            let batch = self.changes.next().now_or_never()?;
            let batch = batch.expect("it goes on").expect("in order");
            let keys = batch.changes.into_iter().map(|it| it.key);
            Some((batch.revision, keys.collect()))
        }

        fn pass(&self, milliseconds: u64) {
            self.clock.advance(Duration::from_millis(milliseconds));
        }
    }

    fn keys(names: &[&str]) -> Vec<String> {
        names.iter().map(|it| format!("/things/{it}")).collect()
    }

    #[test]
    fn what_is_below_a_higher_version_is_given_at_once() {
        let mut upstream = Upstream::open();
        upstream.send(&[("MODIFIED", "c", 11), ("DELETED", "a", 12)]);
        assert_eq!(upstream.batch(), Some((11, keys(&["c"]))));
        assert_eq!(upstream.batch(), None);
        upstream.send(&[("DELETED", "b", 12), ("DELETED", "d", 13)]);
        assert_eq!(upstream.batch(), Some((12, keys(&["a", "b"]))));
        assert_eq!(upstream.batch(), None);
    }

    #[test]
    fn deletions_are_kept_back_from_the_first_one_on() {
        let mut upstream = Upstream::open();
        upstream.send(&[("DELETED", "a", 12)]);
        assert_eq!(upstream.batch(), None);
        upstream.pass(3);
        upstream.send(&[("DELETED", "b", 12)]);
        assert_eq!(upstream.batch(), None);
        upstream.pass(3);
        assert_eq!(upstream.batch(), Some((12, keys(&["a", "b"]))));
        // The next version has a time of its own.
        upstream.send(&[("DELETED", "c", 13)]);
        assert_eq!(upstream.batch(), None);
        upstream.pass(5);
        assert_eq!(upstream.batch(), Some((13, keys(&["c"]))));
    }

    #[test]
    fn a_watch_that_was_long_in_order_has_earlier_faults_forgotten() {
        let faults = |seconds: u64| {
            let mut upstream = Upstream::open();
            upstream.followed.lock().unwrap().faults = 4;
            upstream.send(&[("MODIFIED", "a", 12)]);
            assert_eq!(upstream.batch(), Some((12, keys(&["a"]))));
            assert_eq!(upstream.batch(), None);
            upstream.pass(seconds * 1_000);
            upstream.send(&[("MODIFIED", "a", 11)]);
            let end = upstream.changes.next().now_or_never().flatten();
            assert!(matches!(end, Some(Err(StorageError::WatchExpired))));
            upstream.followed.lock().unwrap().faults
        };
        assert_eq!((faults(60), faults(61)), (5, 1));
    }
}
