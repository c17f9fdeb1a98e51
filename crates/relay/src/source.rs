//! The objects and the changes of one resource of the upstream, for a cache.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ringwatch::storage::{ChangePage, ChangeSource, ChangeStream, RawObject, StorageError};

use super::contact::Contact;
use super::frames::Frames;
use super::order::Order;
use super::query::Query;
use super::refusal::{Refusal, RefusedRequest};
use super::remote::Remote;
use super::resource::ResourceType;
use super::stream::{FAULT_PAUSE_MAX, FollowedResource, Watch};
use super::upstream::{StreamAnswer, Upstream};

/// The time before a watch is opened after one that ended out of order. It doubles with each in a row, up to
/// [`FAULT_PAUSE_MAX`].
const FAULT_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of objects of a page: as clients of API servers read lists, so that no answer is as large as a whole
/// list.
const PAGE_OBJECTS_MAX: u32 = 500;

/// One resource of an upstream as a source of changes, for a `Feed` of its own.
#[derive(Clone, Debug)]
pub struct UpstreamSource {
    remote: Remote,
    contact: Contact,
    followed: Arc<Mutex<FollowedResource>>,
    /// The place where the list that was read last goes on.
    next_page: Arc<Mutex<Option<NextPage>>>,
}

/// The place where a list goes on. The upstream's tokens are its own affair, so they are kept rather than made.
#[derive(Debug)]
struct NextPage {
    revision: u64,
    after: String,
    token: String,
}

impl UpstreamSource {
    /// Creates the source of a resource of an upstream. Nothing is asked yet.
    #[must_use]
    pub fn new(upstream: Arc<Upstream>, resource: ResourceType) -> Self {
        Self {
            contact: Contact::new(upstream.clock()),
            remote: Remote {
                upstream,
                resource: Arc::new(resource),
            },
            followed: Arc::default(),
            next_page: Arc::default(),
        }
    }

    /// Returns the contact with the upstream.
    pub(crate) fn contact(&self) -> &Contact {
        &self.contact
    }

    fn next_page(&self) -> MutexGuard<'_, Option<NextPage>> {
        self.next_page
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn followed(&self) -> MutexGuard<'_, FollowedResource> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits before a watch is opened, if earlier ones ended out of order.
    async fn pause_after_faults(&self) {
        let faults = self.followed().faults;
        if faults > 0 {
            let pause = FAULT_PAUSE.saturating_mul(2_u32.saturating_pow(faults - 1));
            let clock = self.remote.upstream.clock().clone();
            clock.sleep(pause.min(FAULT_PAUSE_MAX)).await;
        }
    }

    /// Returns the query of the page after a key.
    ///
    /// # Errors
    /// [`StorageError::ListExpired`] if the page before it was not the last one that was read.
    fn page_query(&self, after: Option<&str>, revision: u64) -> Result<Query, StorageError> {
        let query = Query::new();
        let Some(after) = after else {
            return Ok(match revision {
                0 => query,
                exact => query
                    .with("resourceVersion", exact)
                    .with("resourceVersionMatch", "Exact"),
            });
        };
        match &*self.next_page() {
            Some(next) if next.after == after && next.revision == revision => {
                Ok(query.with("continue", &next.token))
            }
            _ => Err(StorageError::ListExpired),
        }
    }
}

#[async_trait]
impl ChangeSource for UpstreamSource {
    async fn page(
        &self,
        prefix: &str,
        after: Option<&str>,
        revision: u64,
        limit: u32,
    ) -> Result<ChangePage, StorageError> {
        debug_assert_eq!(prefix, self.remote.resource.prefix);
        if after.is_none() {
            // Before it is asked for if possible, since what follows it may be asked for at the same time.
            self.followed().deletions.forget_up_to(revision);
        }
        let limit = limit.min(PAGE_OBJECTS_MAX);
        let query = self.page_query(after, revision)?.with("limit", limit);
        let page = self.remote.list(None, query, false).await;
        let (page, _memory) = page.map_err(|error| match error {
            // The cache goes on with no state that is not of one version.
            StorageError::ContinueExpired { .. } => StorageError::ListExpired,
            other => other,
        })?;
        if revision != 0 && page.revision != revision {
            return Err(StorageError::Internal {
                message: format!(
                    "the upstream sent a list of version {} for one of version {revision}",
                    page.revision
                ),
            });
        }
        if after.is_none() {
            // A list has all of its version, and nothing of those above.
            self.followed().deletions.forget_up_to(page.revision);
        }
        let items = page.items.into_iter().map(|(head, value)| RawObject {
            key: self.remote.resource.key(&head.namespace, &head.name),
            value,
            revision: head.revision,
        });
        let items: Vec<_> = items.collect();
        let token = page.continue_token;
        let more = !token.is_empty();
        *self.next_page() = items.last().filter(|_| more).map(|last| NextPage {
            revision,
            after: last.key.clone(),
            token,
        });
        if more && items.is_empty() {
            return Err(StorageError::Internal {
                message: "the upstream sent a page without objects that is not the last".to_owned(),
            });
        }
        Ok(ChangePage {
            revision: page.revision,
            items,
            more,
        })
    }

    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError> {
        self.pause_after_faults().await;
        let seen = self.followed().deletions.clone();
        let query = Query::new()
            .with("watch", true)
            .with("allowWatchBookmarks", true)
            .with("resourceVersion", seen.resume_after(revision));
        let (body, is_protobuf) = match self.remote.watch(None, query).await? {
            StreamAnswer::Stream(body, is_protobuf) => (body, is_protobuf),
            StreamAnswer::Refused(answer) => {
                return Err(Refusal::answer(&answer).error(RefusedRequest::Watch));
            }
        };
        let clock = self.remote.upstream.clock().clone();
        let watch = Watch {
            resource: Arc::clone(&self.remote.resource),
            opened: clock.now(),
            clock,
            body,
            frames: Frames::new(is_protobuf),
            order: Order::new(revision, seen),
            followed: Arc::clone(&self.followed),
            kept: Vec::new(),
            siblings_until: None,
            end: None,
        };
        Ok(self.contact.through(watch.into_changes()))
    }

    /// Does nothing: an API server sends bookmarks when it likes.
    async fn request_progress(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn current_revision(&self) -> Result<u64, StorageError> {
        self.remote.current_revision().await
    }

    /// Returns the newest version, since an upstream does not say which it has still.
    async fn oldest_revision(&self) -> Result<u64, StorageError> {
        self.remote.current_revision().await
    }

    async fn has_written(&self, key: &str, revision: u64) -> Result<bool, StorageError> {
        let place = self.remote.resource.object(key)?;
        let name = place.name.unwrap_or_default();
        let query = Query::new()
            .with("fieldSelector", format!("metadata.name={name}"))
            .with("resourceVersion", revision)
            .with("resourceVersionMatch", "Exact");
        match self.remote.list(place.namespace, query, false).await {
            Ok((page, _)) => Ok(page.items.iter().any(|(head, _)| head.revision == revision)),
            Err(StorageError::ListExpired) => Ok(true),
            Err(StorageError::TooLargeResourceVersion { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Returns false: bookmarks overtake no event, but come so seldom that nobody can wait for them.
    fn progress_is_trusted(&self) -> bool {
        false
    }

    /// Returns false: versions count the changes of all resources of the upstream.
    fn reaches_newest(&self) -> bool {
        false
    }
}
