//! A client that keeps a copy of what it selects, as client-go's informers do, and that knows what
//! must come next.

use std::collections::BTreeMap;

use futures::{FutureExt, StreamExt};
use ringwatch_explore::shuttle::Seen;
use shuttle::future::yield_now;
use shuttle::rand::{Rng, thread_rng};
use shuttle_tests::meta::{LabelSelector, ResourceVersion, WatchEvent};
use shuttle_tests::storage::cacher::CacheDelegator;
use shuttle_tests::storage::{
    FollowOutcome, Interface, ListOptions, SelectionPredicate, StorageError, WatchStream,
};
use shuttle_tests::sync::{Arc, Mutex, Ordering};

use crate::store::{Entry, Label, Place};
use crate::world::World;

/// The most lists and watches of a client.
const ROUNDS_MAX: usize = 400;

/// The exclusive bound of the times that a slow client lets others go first before it reads an item.
const STALL_YIELDS_MAX: u32 = 40;

/// The probability that a client goes away after an item, and watches again.
const RESTLESS: f64 = 0.15;

/// The probability that the watch of a client follows a leader, or takes over from it, before an item.
const LEADS_OR_TAKES_OVER: f64 = 0.2;

/// The probability that a client takes any state to begin with.
const ANY_VERSION: f64 = 0.3;

/// The selection of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    Namespace,
    Labelled,
    Single,
    /// Another type.
    Services,
}

impl Selection {
    /// The selections of pods.
    pub(crate) const PODS: [Self; 4] = [Self::All, Self::Namespace, Self::Labelled, Self::Single];

    fn key(self) -> &'static str {
        match self {
            Self::All | Self::Labelled => "/pods/",
            Self::Namespace => "/pods/d/",
            Self::Single => "/pods/d/a",
            Self::Services => "/services/",
        }
    }

    pub(crate) fn selects(self, key: &str, label: Label) -> bool {
        let Some(label) = label else {
            return false;
        };
        match self {
            Self::Labelled => label == "x" && key.starts_with(self.key()),
            Self::Single => key == self.key(),
            Self::All | Self::Namespace | Self::Services => key.starts_with(self.key()),
        }
    }

    pub(crate) fn options(self, version: Option<u64>) -> ListOptions {
        let label = if self == Self::Labelled { "app=x" } else { "" };
        ListOptions {
            resource_version: version.map(ResourceVersion),
            recursive: self != Self::Single,
            predicate: SelectionPredicate {
                label: LabelSelector::parse(label).expect("a selector"),
                allow_watch_bookmarks: true,
                ..SelectionPredicate::default()
            },
            ..ListOptions::default()
        }
    }
}

/// The client.
pub(crate) struct Informer {
    world: Arc<World>,
    /// The server that it talks to.
    server: Arc<CacheDelegator>,
    /// The slot from which the client takes its server before each watch, if servers come and go.
    present: Option<Arc<Mutex<Arc<CacheDelegator>>>>,
    seen: Seen,
    selection: Selection,
    /// True if it sometimes does not read.
    slow: bool,
    /// The revision of each object, as delivered.
    copy: BTreeMap<String, u64>,
    /// The place in the store's history that the client has come to; `None` if it has to begin with the state.
    reached: Option<Place>,
}

/// A watch that follows a leader of its own now and then.
struct LedWatch {
    own: WatchStream,
    leader: Option<WatchStream>,
}

/// The end of a watch, which tells the client how to go on.
enum End {
    /// True once everything has been delivered.
    Complete,
    /// Watch again from where it ended.
    Resume,
    /// List again.
    StartOver,
    /// The server is draining its watches.
    Drained,
}

impl LedWatch {
    /// Has the watch follow a leader, if that can be now, or take over from it. Returns true if it takes over.
    fn lead_or_take_over(&mut self) -> bool {
        if let Some(leader) = self.leader.take() {
            self.own.take_over(&leader);
            return true;
        }
        if let Some(mut leader) = self.own.leader()
            && self.own.follow(&mut leader) == FollowOutcome::Follows
        {
            self.leader = Some(leader);
        }
        false
    }

    async fn next(&mut self) -> Option<Result<WatchEvent, StorageError>> {
        if let Some(leader) = &mut self.leader {
            if let Some(Ok(event)) = leader.next().await {
                return Some(Ok(event));
            }
            // The watch finds the end itself.
            self.lead_or_take_over();
        }
        self.own.next().await
    }
}

impl Informer {
    /// Creates a client of the pods.
    pub(crate) fn new(world: &Arc<World>, seen: &Seen, selection: Selection, slow: bool) -> Self {
        Self {
            world: Arc::clone(world),
            server: Arc::clone(&world.pods),
            present: None,
            seen: seen.clone(),
            selection,
            slow,
            copy: BTreeMap::new(),
            reached: None,
        }
    }

    /// Returns this client with another server.
    pub(crate) fn of(self, server: Arc<CacheDelegator>) -> Self {
        Self { server, ..self }
    }

    /// Returns this client with the server that is found there each time.
    pub(crate) fn of_present(self, present: Arc<Mutex<Arc<CacheDelegator>>>) -> Self {
        let present = Some(present);
        Self { present, ..self }
    }

    /// Lists and watches until the store's last change has come, or the watches are drained.
    pub(crate) async fn run(mut self) {
        for _ in 0..ROUNDS_MAX {
            let Some(mut watch) = self.begin().await else {
                if self.world.drained.load(Ordering::SeqCst) > 0 {
                    return;
                }
                yield_now().await;
                continue;
            };
            match self.follow(&mut watch).await {
                End::Complete => return self.compare(),
                End::Drained => return,
                End::Resume => {}
                End::StartOver => self.reached = None,
            }
        }
        panic!("{:?}: not everything was delivered", self.selection);
    }

    /// Returns a watch from where the client is, after a list if need be.
    async fn begin(&mut self) -> Option<LedWatch> {
        if let Some(present) = &self.present {
            let present = present.lock().expect("no model panics under the lock");
            self.server = Arc::clone(&present);
        }
        if self.reached.is_none() && thread_rng().gen_bool(0.5) {
            return self.stream_state().await;
        }
        if self.reached.is_none() {
            self.list().await?;
        }
        let options = self.selection.options(Some(self.reached?.revision));
        self.watch(options).await
    }

    /// Draws the state to begin with: mostly the newest, and then the history and the revision that it is at least of.
    fn version(&self) -> (Option<u64>, (usize, u64)) {
        if thread_rng().gen_bool(ANY_VERSION) {
            self.seen.note("any version");
            return (Some(0), (0, 0));
        }
        (None, self.world.store.newest())
    }

    /// A state must not be older than what was known before it was asked for.
    fn check_age(&self, revision: u64, before: (usize, u64)) {
        let of = (self.world.store.history_of(revision), revision);
        assert!(of >= before, "a state of {of:?} < {before:?}");
    }

    /// Lists the state.
    async fn list(&mut self) -> Option<()> {
        let (version, before) = self.version();
        let (key, options) = (self.selection.key(), self.selection.options(version));
        let list = match self.server.get_list(key, options).await {
            Ok(list) => list,
            Err(StorageError::NotReady { .. }) => return None,
            Err(error) => panic!("a list of the state: {error}"),
        };
        self.check_age(list.revision, before);
        let items = list.items.iter();
        self.copy = items.map(|it| (key_of(it), it.revision())).collect();
        self.reach(list.revision);
        self.compare_at(list.revision);
        Some(())
    }

    /// Returns a watch that begins with the state.
    async fn stream_state(&mut self) -> Option<LedWatch> {
        let (version, before) = self.version();
        let begun = self.world.clock.now();
        let mut options = self.selection.options(version);
        options.send_initial_events = Some(true);
        let mut watch = self.watch(options).await?;
        self.copy.clear();
        // A watch that comes while the type is listed again ends at once.
        let mut item = self.item(&mut watch).await?;
        loop {
            match item {
                Ok(WatchEvent::Added(object)) => {
                    let double = self.copy.insert(key_of(&object), object.revision());
                    assert_eq!(double, None, "{:?}", object.name());
                }
                Ok(WatchEvent::Bookmark {
                    revision,
                    initial_events_end: true,
                }) => {
                    self.check_age(revision, before);
                    self.reach(revision);
                    self.compare_at(revision);
                    self.seen.note("streamed the state");
                    return Some(watch);
                }
                Ok(other) => panic!("{other:?} before the end of the state"),
                Err(
                    StorageError::TooLargeResourceVersion { .. } | StorageError::Timeout { .. },
                ) => {
                    self.world.gave_up(begun);
                    return None;
                }
                // The type was listed again, or the store was put back, while it waited.
                Err(StorageError::NotReady { .. } | StorageError::WatchExpired)
                    if self.copy.is_empty() =>
                {
                    return None;
                }
                Err(error) => panic!("instead of the state: {error}"),
            }
            let next = self.item(&mut watch).await;
            item = next.expect("a state that has begun comes to its end");
        }
    }

    async fn watch(&self, options: ListOptions) -> Option<LedWatch> {
        match self.server.watch(self.selection.key(), options).await {
            Ok(own) => Some(LedWatch { own, leader: None }),
            Err(StorageError::NotReady { .. }) => None,
            Err(error) => panic!("a watch: {error}"),
        }
    }

    /// Reads a watch to its end, or until everything has been delivered.
    async fn follow(&mut self, watch: &mut LedWatch) -> End {
        let mut bookmarked = false;
        // A watch that began before the drain gets a bookmark of the revision it has reached, if that is not lower.
        let late = self.world.drained.load(Ordering::SeqCst) > 0;
        loop {
            if self.is_complete() {
                return End::Complete;
            }
            if thread_rng().gen_bool(RESTLESS) && self.is_between_revisions() {
                self.seen.note("went away and resumed");
                return End::Resume;
            }
            match self.item(watch).await {
                Some(Ok(WatchEvent::Bookmark {
                    revision,
                    initial_events_end: false,
                })) => {
                    self.bookmark(revision);
                    bookmarked = true;
                }
                Some(Ok(event)) => {
                    self.event(&event);
                    bookmarked = false;
                }
                Some(Err(StorageError::WatchExpired)) if self.world.store.newest().0 > 0 => {
                    self.seen.note("put back");
                    return End::StartOver;
                }
                Some(Err(StorageError::TooOld { .. })) => {
                    self.seen.note("too old");
                    return End::StartOver;
                }
                Some(Err(error)) => panic!("a watch ends with {error}"),
                None if self.world.drained.load(Ordering::SeqCst) > 0 => {
                    let drained = self.world.drained.load(Ordering::SeqCst);
                    let further = self.place().revision >= drained as u64;
                    assert!(bookmarked || further || late, "no last bookmark");
                    if bookmarked {
                        self.seen.note("a last bookmark");
                    }
                    return End::Drained;
                }
                None => {
                    self.seen.note("ended and resumed");
                    return End::Resume;
                }
            }
        }
    }

    /// Returns the next item of a watch. Looks at it and goes away again now and then.
    async fn item(&self, watch: &mut LedWatch) -> Option<Result<WatchEvent, StorageError>> {
        if self.slow {
            for _ in 0..thread_rng().gen_range(0..STALL_YIELDS_MAX) {
                yield_now().await;
            }
        }
        if thread_rng().gen_bool(LEADS_OR_TAKES_OVER) && watch.lead_or_take_over() {
            self.seen.note("took over");
        }
        if thread_rng().gen_bool(0.3)
            && let Some(item) = watch.next().now_or_never()
        {
            return item;
        }
        watch.next().await
    }

    /// An event must be the next change of what is selected.
    fn event(&mut self, event: &WatchEvent) {
        let (after, expected) = self.next().unwrap_or_else(|| {
            panic!("{:?}: {event:?} of nothing", self.selection);
        });
        let selects = |label| self.selection.selects(&expected.key, label);
        let (kind, object) = match event {
            WatchEvent::Added(object) => ((false, true), object),
            WatchEvent::Modified(object) | WatchEvent::Replaced { object, .. } => {
                ((true, true), object)
            }
            WatchEvent::Deleted(object) => ((true, false), object),
            WatchEvent::Bookmark { .. } => panic!("{event:?} after the state"),
        };
        let received = (key_of(object), object.revision());
        assert_eq!(received, (expected.key.clone(), expected.revision));
        let expected_kind = (selects(expected.before), selects(expected.after));
        assert_eq!(kind, expected_kind, "{event:?} instead of {expected:?}");
        let content = if kind.1 {
            expected.after
        } else {
            expected.before
        };
        assert_eq!(object.attributes().labels().get("app"), content);
        if kind.1 {
            self.copy.insert(received.0, received.1);
        } else {
            self.copy.remove(&received.0);
        }
        self.reached = Some(after);
    }

    /// A bookmark must not go back, and nothing at or below it may be missing.
    fn bookmark(&mut self, revision: u64) {
        let place = self.place();
        assert!(revision >= place.revision, "a bookmark goes back");
        let newest = self.world.store.newest_at(place);
        assert!(revision <= newest, "a bookmark of what is not");
        if let Some((_, next)) = self.next() {
            let early = next.revision <= revision;
            assert!(!early, "a bookmark of {revision} overtakes {next:?}");
        }
        self.seen.note("bookmark");
        self.reach(revision);
    }

    fn place(&self) -> Place {
        self.reached.expect("a watch follows a list")
    }

    /// Returns the next change that must be delivered, and the place after it.
    fn next(&self) -> Option<(Place, Entry)> {
        let selection = self.selection;
        let store = &self.world.store;
        store.next(self.place(), |key, label| selection.selects(key, label))
    }

    fn reach(&mut self, revision: u64) {
        self.reached = Some(self.world.store.place_after(revision));
    }

    /// Returns true if a watch can be resumed here: changes that share a revision come one by one.
    fn is_between_revisions(&self) -> bool {
        self.next()
            .is_none_or(|(_, next)| next.revision > self.place().revision)
    }

    fn is_complete(&self) -> bool {
        self.world.store.is_at_last(self.place()) && self.next().is_none()
    }

    fn compare(&self) {
        self.compare_at(self.world.store.revision());
    }

    fn compare_at(&self, revision: u64) {
        let selection = self.selection;
        let selects = |key: &str, label| selection.selects(key, label);
        let stored = self.world.store.selected(revision, selects);
        assert_eq!(self.copy, stored, "{selection:?} at {revision}");
    }
}

pub(crate) fn key_of(object: &shuttle_tests::meta::Object) -> String {
    let namespace = object.namespace();
    // Services have a namespace of their own.
    let resource = if namespace == "s" { "services" } else { "pods" };
    format!("/{resource}/{namespace}/{}", object.name())
}
