//! The watches that clients have open, each with its client and its progress.
//!
//! A watch writes to its own entry once a chunk; everything else about it is known from its beginning, or asked of the
//! watch cache when somebody looks. Entries are as many as there are watches, which have limits of their own.

use std::sync::{Arc, OnceLock, PoisonError};

use ringwatch::clock::Instant;
use ringwatch::storage::{SelectionPredicate, WatchLag, WatchObserver, WatchProgress};
use ringwatch::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

use crate::client_summary::ClientSummary;
use crate::sharded_registry::ShardedRegistry;
use crate::shortened_text::shortened;

/// The watches that clients have open. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct OpenWatches(Arc<ShardedRegistry<OpenWatch>>);

/// The selection of a watch, by what narrows it most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchKind {
    /// All objects of the type.
    Everything,
    /// All objects of a namespace.
    Namespace,
    /// One object.
    Name,
    /// Objects with certain labels.
    Labels,
    /// Objects with certain fields.
    Fields,
    /// A shard of the objects.
    Shards,
}

/// The client of a watch, and its selection.
#[derive(Clone, Debug)]
pub struct WatchTarget<'a> {
    /// The group and the plural resource that the request names.
    pub resource: (&'a str, &'a str),
    /// The namespace; empty for all.
    pub namespace: &'a str,
    /// The selectors.
    pub predicate: &'a SelectionPredicate,
    /// The client.
    pub client: ClientSummary,
    /// The time of the request.
    pub since: Instant,
}

/// An open watch of a client.
#[derive(Debug)]
pub struct OpenWatch {
    /// The number of the watch, which is not reused.
    pub id: u64,
    /// The client.
    pub client: ClientSummary,
    /// The namespace; empty for all.
    pub namespace: Box<str>,
    /// The selectors as text, cut off where it is long.
    pub selector: Box<str>,
    /// The selection.
    pub kind: WatchKind,
    /// The time of the request.
    pub since: Instant,
    /// The type that the request names.
    requested: (Box<str>, Box<str>),
    /// The place of the watch in its cache; unset if no cache serves it.
    place: OnceLock<Arc<dyn WatchProgress>>,
    sent: AtomicU64,
    revision: AtomicU64,
    /// The leader that it follows, if it does.
    led: Mutex<Option<LedWatch>>,
}

/// The count of what a leader has sent to each of the watches that follow it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LeaderTally(Arc<TallyState>);

#[derive(Debug, Default)]
struct TallyState {
    sent: AtomicU64,
    revision: AtomicU64,
}

/// A watch that follows a leader.
#[derive(Debug)]
struct LedWatch {
    leader: LeaderTally,
    /// The number of events that the leader had sent when the watch began to follow.
    before: u64,
}

/// An entry of an open watch, which is removed when this is dropped.
#[derive(Debug)]
pub struct WatchEntry {
    watch: Arc<OpenWatch>,
    all: OpenWatches,
}

impl OpenWatches {
    /// Adds a watch that begins.
    #[must_use]
    pub fn add(&self, target: WatchTarget<'_>) -> WatchEntry {
        let (group, resource) = target.resource;
        let (_, watch) = self.0.add(|id| OpenWatch {
            id,
            client: target.client,
            namespace: shortened(target.namespace),
            selector: shortened(&selector(target.predicate)),
            kind: kind(target.namespace, target.predicate),
            since: target.since,
            requested: (group.into(), resource.into()),
            place: OnceLock::new(),
            sent: AtomicU64::new(0),
            revision: AtomicU64::new(0),
            led: Mutex::default(),
        });
        WatchEntry {
            watch,
            all: self.clone(),
        }
    }

    /// Returns all watches, in no particular order.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<OpenWatch>> {
        self.0.all()
    }

    /// Returns a watch by its number; `None` if it has ended.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<Arc<OpenWatch>> {
        self.0.get(id)
    }
}

impl OpenWatch {
    /// Returns the group and the plural resource of the type: of the cache that serves it, otherwise as the request
    /// names it.
    #[must_use]
    pub fn of_type(&self) -> (&str, &str) {
        let requested = (&*self.requested.0, &*self.requested.1);
        self.place.get().map_or(requested, |place| place.of_type())
    }

    /// Returns how far behind it is; `None` if no cache serves it.
    #[must_use]
    pub fn lag(&self) -> Option<WatchLag> {
        self.place.get().map(|place| place.lag())
    }

    /// Returns how many events and bookmarks have been written for the client.
    #[must_use]
    pub fn sent(&self) -> u64 {
        let led = self.led();
        let by_leader = led.as_ref().map_or(0, LedWatch::sent);
        // Relaxed: a figure, as the next one.
        self.sent.load(Ordering::Relaxed) + by_leader
    }

    /// Returns the revision of the last event or bookmark that was written; `None` if there was none.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        let led = self.led();
        let led = led.as_ref().filter(|it| it.sent() > 0);
        let revision = led.map_or(&self.revision, |it| &it.leader.0.revision);
        Some(revision.load(Ordering::Relaxed)).filter(|it| *it > 0)
    }

    fn led(&self) -> MutexGuard<'_, Option<LedWatch>> {
        // It is replaced as a whole, so poison is ignored.
        self.led.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LeaderTally {
    /// Adds events that were written for each follower, of which the last has a revision.
    pub fn add(&self, events: u64, revision: u64) {
        // Relaxed: figures, which the leader's own task alone stores.
        let sent = self.0.sent.load(Ordering::Relaxed);
        self.0.sent.store(sent + events, Ordering::Relaxed);
        self.0.revision.store(revision, Ordering::Relaxed);
    }
}

impl LedWatch {
    /// Returns how many events the leader has sent since the watch follows it.
    fn sent(&self) -> u64 {
        // Relaxed: a figure.
        self.leader.0.sent.load(Ordering::Relaxed) - self.before
    }
}

impl WatchObserver for OpenWatch {
    fn begins(&self, place: Arc<dyn WatchProgress>) {
        // It begins once.
        let _ = self.place.set(place);
    }
}

impl WatchEntry {
    /// Returns the observer to which the cache tells the position of the watch.
    #[must_use]
    pub fn observer(&self) -> Arc<dyn WatchObserver> {
        Arc::clone(&self.watch) as _
    }

    /// Adds written events, of which the last has a revision.
    pub fn sent(&self, events: u64, revision: u64) {
        let sent = &self.watch.sent;
        // Relaxed: figures, which the watch's own task alone stores.
        sent.store(sent.load(Ordering::Relaxed) + events, Ordering::Relaxed);
        self.watch.revision.store(revision, Ordering::Relaxed);
    }

    /// Counts what a leader sends from here on as sent to this watch.
    pub fn follow(&self, leader: &LeaderTally) {
        // Relaxed: a figure.
        let before = leader.0.sent.load(Ordering::Relaxed);
        *self.watch.led() = Some(LedWatch {
            leader: leader.clone(),
            before,
        });
    }

    /// Counts what a leader sends no longer.
    pub fn take_over(&self) {
        let (sent, revision) = (self.watch.sent(), self.watch.revision());
        *self.watch.led() = None;
        // Relaxed: figures, as in `sent`.
        self.watch.sent.store(sent, Ordering::Relaxed);
        let revision = revision.unwrap_or_default();
        self.watch.revision.store(revision, Ordering::Relaxed);
    }
}

impl Drop for WatchEntry {
    fn drop(&mut self) {
        self.all.0.remove(self.watch.id);
    }
}

impl WatchKind {
    /// All kinds, from the widest selection on.
    pub const ALL: [Self; 6] = [
        Self::Everything,
        Self::Namespace,
        Self::Name,
        Self::Labels,
        Self::Fields,
        Self::Shards,
    ];

    /// Returns its name in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Namespace => "namespace",
            Self::Name => "name",
            Self::Labels => "labels",
            Self::Fields => "fields",
            Self::Shards => "shards",
        }
    }
}

/// Returns the selectors as text.
fn selector(predicate: &SelectionPredicate) -> String {
    let mut parts = Vec::new();
    if !predicate.label.is_empty() {
        parts.push(predicate.label.to_string());
    }
    if !predicate.field.is_empty() {
        parts.push(predicate.field.to_string());
    }
    if !predicate.shard.is_empty() {
        parts.push(predicate.shard.to_string());
    }
    parts.join(" ")
}

/// Returns the kind of a selection.
fn kind(namespace: &str, predicate: &SelectionPredicate) -> WatchKind {
    if predicate.single_name().is_some() {
        WatchKind::Name
    } else if !predicate.label.is_empty() {
        WatchKind::Labels
    } else if !predicate.field.is_empty() {
        WatchKind::Fields
    } else if !predicate.shard.is_empty() {
        WatchKind::Shards
    } else if !namespace.is_empty() {
        WatchKind::Namespace
    } else {
        WatchKind::Everything
    }
}

#[cfg(test)]
mod tests {
    use http::header::USER_AGENT;
    use http::{HeaderMap, HeaderValue};
    use ringwatch::clock::Clock;
    use ringwatch::meta::{FieldSelector, LabelSelector};

    use super::*;

    fn predicate(label: &str, field: &str) -> SelectionPredicate {
        SelectionPredicate {
            label: LabelSelector::parse(label).expect("a selector"),
            field: FieldSelector::parse(field).expect("a selector"),
            ..SelectionPredicate::default()
        }
    }

    #[test]
    fn a_watch_is_listed_until_it_ends_and_its_texts_are_cut_off() {
        let watches = OpenWatches::default();
        let since = Clock::real().now();
        let agent = HeaderValue::from_str(&"x".repeat(1_000)).expect("a header");
        let headers = HeaderMap::from_iter([(USER_AGENT, agent)]);
        let add = |namespace, label, field| {
            watches.add(WatchTarget {
                resource: ("apps", "deployments"),
                namespace,
                predicate: &predicate(label, field),
                client: ClientSummary::new("jane", &headers, None),
                since,
            })
        };
        let entries = [
            (add("", "", ""), WatchKind::Everything, ""),
            (add("ns", "", ""), WatchKind::Namespace, ""),
            (add("ns", "a=b", "x=y"), WatchKind::Labels, "a=b x=y"),
            (add("", "", "x!=y"), WatchKind::Fields, "x!=y"),
            (
                add("", "", "metadata.name=n"),
                WatchKind::Name,
                "metadata.name=n",
            ),
        ];
        assert_eq!(watches.all().len(), entries.len());
        for (number, (entry, kind, selector)) in entries.iter().enumerate() {
            let watch = watches.get(number as u64).expect("an open watch");
            assert_eq!((watch.kind, &*watch.selector), (*kind, *selector));
            assert_eq!(watch.of_type(), ("apps", "deployments"));
            assert!(watch.client.user_agent.len() < 1_000);
            assert_eq!(
                (watch.sent(), watch.revision(), watch.lag()),
                (0, None, None)
            );
            entry.sent(2, 7);
            entry.sent(1, 9);
            assert_eq!((watch.sent(), watch.revision()), (3, Some(9)));
        }
        let (entry, ..) = &entries[0];
        let (leader, watch) = (LeaderTally::default(), watches.get(0).expect("it is open"));
        leader.add(5, 10);
        entry.follow(&leader);
        assert_eq!((watch.sent(), watch.revision()), (3, Some(9)));
        leader.add(2, 12);
        assert_eq!((watch.sent(), watch.revision()), (5, Some(12)));
        entry.take_over();
        leader.add(1, 13);
        assert_eq!((watch.sent(), watch.revision()), (5, Some(12)));
        drop(entries);
        drop(watch);
        assert!(watches.all().is_empty());
        assert!(watches.get(0).is_none());
    }
}
