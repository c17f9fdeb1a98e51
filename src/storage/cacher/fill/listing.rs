//! Listing a type while its changes are followed.
//!
//! ```text
//!   stream   ... c1 ...... c2 ........ c3 ................ revision of the last page: serve
//!                 \         \           \                 /
//!   list      [page 1 at r1][page 2 at r2][page 3 at r3]-+
//! ```
//!
//! Each page is of the newest state at the time of its request, so the pages are of different revisions and no
//! compaction can overtake a list, however slow it is. The stream of changes makes one state of them: every change is
//! applied to what has been listed so far, unless that is newer. When the stream has reached the revision of the newest
//! page, the state is that of the stream's revision.
//!
//! # Why it is right
//!
//! Take a key, the page at `r` that covers it, and the changes of the key in their order.
//!
//! - Changes up to `r` that came before the page was requested are in the page, since the store is never behind a
//!   revision that it has reported; the page overwrites what they left.
//! - Changes that come while the page is in flight count as newer than the page: the page's item is skipped. If it was
//!   the page that was newer, the change that made it so is still to come.
//! - Changes that come after the page and are not newer than its item are skipped. If the page did not hold the key,
//!   then the last change up to `r` was a deletion; earlier ones may restore the key for a while, and the deletion,
//!   which is still to come, removes it.
//!
//! All that is still to come has come when the stream has reached `r`.
//!
//! A change whose value cannot be read without waiting is a change as any other, but that its value comes later
//! ([`super::list_decryption`]): until then the list is not complete.
//!
//! A store whose progress notices cannot be trusted might not report for long that it has reached a revision. There all
//! pages are of the revision at which the list began, so that together they are one long page. Compaction can overtake
//! such a list, which then begins again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::cache_writer::{Filling, read_entry};
use super::decryption_request::DecryptionRequest;
use super::feed_shared::{FeedShared, TypeId};
use super::list_decryption::EncryptedValues;
use crate::budget::Share;
use crate::clock::Instant;
use crate::storage::cacher::dispatch::watch_cache::WatchCache;
use crate::storage::cacher::window::snapshot::Entry;
use crate::storage::{Change, ChangeKind, StorageError};

/// The number of objects in a page while changes are followed, at first and at least. A page is applied in one go,
/// during which changes wait.
const PAGE_OBJECTS: u32 = 2_000;
const PAGE_OBJECTS_MIN: u32 = 50;

/// The number of objects in a page of a list at one revision, when no changes wait for it.
const PINNED_PAGE_OBJECTS: u32 = 10_000;

/// Maximum number of keys that may change while a page is in flight; beyond that it is requested again with half as
/// many objects.
const CHANGED_KEYS_MAX: usize = 100_000;

/// Maximum number of objects that are decoded before the task yields.
const DECODED_AT_ONCE_MAX: usize = 50;

/// Maximum time that a page may take, in seconds.
const PAGE_SECONDS_MAX: u64 = 30;

/// A list that is in progress.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The objects that have been listed so far.
    filling: Filling,
    /// The last key that was listed.
    after: Option<Arc<str>>,
    /// The revision of all pages; `None` if each is of the newest.
    pinned: Option<u64>,
    /// The newest revision of a page so far.
    revision: u64,
    /// The keys that have changed since the page in flight was requested.
    changed: HashSet<Arc<str>>,
    /// True if more than [`CHANGED_KEYS_MAX`] keys changed, so that the page in flight must be dropped.
    spoilt: bool,
    /// The values of changes that could not be read yet.
    encrypted: EncryptedValues,
    /// The ticket of the page in flight.
    in_flight: Option<u64>,
    /// True once the last page has come.
    complete: bool,
    /// The number of pages in a row that have failed.
    failures: u32,
    /// The instant at which the next page is to be requested.
    due: Instant,
    /// The number of objects to request.
    page_objects: u32,
}

/// A request for a page.
#[derive(Debug)]
pub(crate) struct PageRequest {
    /// The last key of the previous page; `None` for the first page.
    pub(crate) after: Option<Arc<str>>,
    /// The revision to read at; 0 for the newest.
    pub(crate) revision: u64,
    /// Maximum number of objects of the page.
    pub(crate) objects: u32,
}

/// A page of a type's list, decoded.
#[derive(Debug)]
pub(crate) struct ObjectPage {
    /// The revision of the page.
    pub(crate) revision: u64,
    /// The objects in key order.
    pub(crate) entries: Vec<(Arc<str>, Entry)>,
    /// True if more objects follow.
    pub(crate) more: bool,
}

/// The answer to the request for a page.
#[derive(Debug)]
pub(crate) struct PageAnswer {
    /// The type that the page is of.
    pub(crate) id: TypeId,
    /// The ticket of the request, which distinguishes a late page of an abandoned list.
    pub(crate) ticket: u64,
    /// The lowest revision that the page may have: the newest that the store had reported at the time of the request,
    /// or the requested one. A page below it shows that the store was rolled back.
    pub(crate) revision_min: u64,
    /// The page, or the error of reading it.
    pub(crate) page: Result<ObjectPage, StorageError>,
}

impl Listing {
    /// Creates a list that begins at an instant, with an empty filling. Values that wait are counted in a share.
    pub(crate) fn new(filling: Filling, share: Share, due: Instant) -> Self {
        Self {
            filling,
            after: None,
            pinned: None,
            revision: 0,
            changed: HashSet::new(),
            spoilt: false,
            encrypted: EncryptedValues::new(share, due),
            in_flight: None,
            complete: false,
            failures: 0,
            due,
            page_objects: PAGE_OBJECTS,
        }
    }

    /// Returns when a page is to be requested; `None` while one is in flight or when all have come.
    pub(crate) fn due(&self) -> Option<Instant> {
        (self.in_flight.is_none() && !self.complete).then_some(self.due)
    }

    /// Returns the request for the next page. `ticket` must differ from that of every other page, of whichever list.
    /// `pin` is the stream's revision if the store's progress notices cannot be trusted.
    pub(crate) fn request_page(&mut self, ticket: u64, pin: Option<u64>) -> PageRequest {
        if self.after.is_none() {
            self.pinned = pin;
        }
        if self.pinned.is_none() || self.after.is_none() {
            self.changed.clear();
            self.spoilt = false;
        }
        self.in_flight = Some(ticket);
        PageRequest {
            after: self.after.clone(),
            revision: self.pinned.unwrap_or(0),
            objects: self.page_objects,
        }
    }

    /// Returns true if the page with a ticket is the one in flight, rather than a late one of an abandoned list.
    pub(crate) fn is_in_flight(&self, ticket: u64) -> bool {
        self.in_flight == Some(ticket)
    }

    /// Applies a page. The next one is requested at `now`.
    pub(crate) fn take(&mut self, cache: &WatchCache, page: ObjectPage, now: Instant) {
        self.in_flight = None;
        self.due = now;
        self.failures = 0;
        if self.spoilt {
            self.page_objects = (self.page_objects / 2).max(PAGE_OBJECTS_MIN);
            if self.pinned.is_some() {
                self.begin_again();
            }
            return;
        }
        self.revision = self.revision.max(page.revision);
        for (key, entry) in page.entries {
            self.after = Some(Arc::clone(&key));
            if !self.changed.contains(&key) {
                self.filling.put(key, entry);
            }
        }
        self.complete = !page.more;
        self.filling.note(cache);
    }

    /// Records that a page could not be read, and returns how many failures there were in a row.
    pub(crate) fn fail(&mut self, error: &StorageError) -> u32 {
        self.in_flight = None;
        self.failures = self.failures.saturating_add(1);
        match error {
            StorageError::Timeout { .. } => {
                self.page_objects = (self.page_objects / 2).max(PAGE_OBJECTS_MIN);
            }
            StorageError::ListExpired => self.begin_again(),
            _ => {}
        }
        self.failures
    }

    /// Schedules the request for the next page at an instant.
    pub(crate) fn retry_at(&mut self, due: Instant) {
        self.due = due;
    }

    /// Begins with the first page again, at the instant that is due.
    fn begin_again(&mut self) {
        self.filling.clear();
        self.encrypted.clear();
        self.after = None;
        self.revision = 0;
        self.complete = false;
    }

    /// Applies a change to what has been listed so far. The list begins again, later, if too many values wait.
    pub(crate) fn absorb(&mut self, cache: &WatchCache, change: Change) {
        let key: Arc<str> = change.key.into();
        if self.filling.revision_of(&key) >= Some(change.revision) {
            return;
        }
        self.encrypted.remove(&key);
        match change.kind {
            ChangeKind::Encrypted { value, .. } => {
                if !self.encrypted.put(Arc::clone(&key), change.revision, value) {
                    tracing::warn!(
                        key = &*key,
                        "too many values of a list wait to be decrypted"
                    );
                    self.in_flight = None;
                    self.due = self.encrypted.fail(cache.clock.now());
                    return self.begin_again();
                }
            }
            ChangeKind::Delete => self.filling.remove(&key),
            ChangeKind::Put { value, .. } => {
                let entry = read_entry(cache, &key, value, change.revision);
                self.filling.put(Arc::clone(&key), entry);
            }
        }
        if self.complete || self.spoilt {
            return;
        }
        self.changed.insert(key);
        if self.changed.len() > CHANGED_KEYS_MAX {
            self.changed = HashSet::new();
            self.spoilt = true;
        }
    }

    /// Returns when a value is to be requested; `None` while one is in flight or if none waits.
    pub(crate) fn value_due(&self) -> Option<Instant> {
        self.encrypted.due()
    }

    /// Returns the request for the next value, if it is due. `ticket` must differ from that of every other request.
    pub(crate) fn request_value(&mut self, ticket: u64, now: Instant) -> Option<DecryptionRequest> {
        self.encrypted.request(ticket, now)
    }

    /// Returns true if the value with a ticket is the one that has been requested.
    pub(crate) fn awaits_value(&self, ticket: u64) -> bool {
        self.encrypted.is_in_flight(ticket)
    }

    /// Applies the value that has been requested, unless its key has a newer one.
    pub(crate) fn take_value(&mut self, cache: &WatchCache, value: Bytes, now: Instant) {
        if let Some((key, revision)) = self.encrypted.take(now)
            && self.filling.revision_of(&key) < Some(revision)
        {
            let entry = read_entry(cache, &key, value, revision);
            self.filling.put(key, entry);
        }
    }

    /// Records that the requested value cannot be read now. It is requested again later.
    pub(crate) fn fail_value(&mut self, now: Instant) {
        self.encrypted.fail(now);
    }

    /// Returns true if all pages and values have come and only the stream has to reach a revision.
    pub(crate) fn awaits_stream(&self) -> bool {
        self.complete && self.encrypted.is_empty()
    }

    /// Returns the listed state if the stream, now at `revision`, has completed it, and no value waits.
    pub(crate) fn finish(&mut self, revision: u64) -> Option<Filling> {
        let done = self.complete && self.revision <= revision && self.encrypted.is_empty();
        done.then(|| std::mem::take(&mut self.filling))
    }
}

/// Reads a page of a type's list from the store and decodes it.
///
/// # Errors
/// The store's error; [`StorageError::Timeout`] if it takes longer than [`PAGE_SECONDS_MAX`].
pub(crate) async fn read_page(
    feed: &FeedShared,
    cache: &WatchCache,
    request: PageRequest,
) -> Result<ObjectPage, StorageError> {
    let after = request.after.as_deref();
    let prefix = &cache.config.prefix;
    let page = feed
        .source
        .page(prefix, after, request.revision, request.objects);
    let page = tokio::select! {
        page = page => page?,
        () = feed.clock.sleep(Duration::from_secs(PAGE_SECONDS_MAX)) => {
            return Err(StorageError::Timeout {
                message: format!("a page of the list took more than {PAGE_SECONDS_MAX} s"),
            });
        }
    };
    let mut entries = Vec::with_capacity(page.items.len());
    for (number, raw) in page.items.into_iter().enumerate() {
        let entry = read_entry(cache, &raw.key, raw.value, raw.revision);
        entries.push((raw.key.into(), entry));
        if number % DECODED_AT_ONCE_MAX == DECODED_AT_ONCE_MAX - 1 {
            tokio::task::yield_now().await;
        }
    }
    Ok(ObjectPage {
        revision: page.revision,
        entries,
        more: page.more,
    })
}

/// Reads all objects of a type at one revision into an empty filling.
///
/// # Errors
/// [`StorageError::ListExpired`] when the revision is compacted; any other error of the store.
pub(crate) async fn read_all(
    feed: &FeedShared,
    cache: &WatchCache,
    mut filling: Filling,
    revision: u64,
) -> Result<Filling, StorageError> {
    let mut after = None;
    loop {
        let request = PageRequest {
            after: after.clone(),
            revision,
            objects: PINNED_PAGE_OBJECTS,
        };
        let page = read_page(feed, cache, request).await?;
        after = page
            .entries
            .last()
            .map(|(key, _)| Arc::clone(key))
            .or(after);
        for (key, entry) in page.entries {
            filling.put(key, entry);
        }
        filling.note(cache);
        if !page.more {
            return Ok(filling);
        }
    }
}
