//! A client that keeps a copy of what it selects, as client-go's informers do, and that knows what
//! must come next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use ringwatch::meta::{LabelSelector, Object, ResourceVersion, WatchEvent};
use ringwatch::storage::{Interface, ListOptions, SelectionPredicate, StorageError, WatchStream};

use crate::store::{Entry, Label};
use crate::world::World;

/// The time that a client waits for an item before it looks whether that was all.
const PATIENCE: Duration = Duration::from_millis(50);

/// The time that a client waits before it repeats a request that was refused.
const RETRY: Duration = Duration::from_millis(2);

/// The most requests of a client.
const ROUNDS_MAX: usize = 100_000;

/// A slow client sleeps after one item of so many, and a restless one goes away.
const ITEMS_MAX: u32 = 100;

/// The time for which a client sleeps: so that its channel overflows, and so that the window passes it.
const NAP: Duration = Duration::from_millis(15);
const STALL: Duration = Duration::from_millis(400);

/// The selection of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selection {
    All,
    Namespace,
    Labelled,
    Single,
}

impl Selection {
    pub(crate) const EACH: [Self; 4] = [Self::All, Self::Namespace, Self::Labelled, Self::Single];

    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::All | Self::Labelled => "/pods/",
            Self::Namespace => "/pods/n1/",
            Self::Single => "/pods/n1/p1",
        }
    }

    fn selects(self, key: &str, label: Label) -> bool {
        label.is_some_and(|label| match self {
            Self::All | Self::Namespace => key.starts_with(self.key()),
            Self::Labelled => key.starts_with(self.key()) && label == "x",
            Self::Single => key == self.key(),
        })
    }

    pub(crate) fn options(self, version: Option<u64>) -> ListOptions {
        let label = match self {
            Self::Labelled => "app=x",
            Self::All | Self::Namespace | Self::Single => "",
        };
        ListOptions {
            resource_version: version.map(ResourceVersion),
            recursive: !matches!(self, Self::Single),
            predicate: SelectionPredicate {
                label: LabelSelector::parse(label).expect("a selector"),
                allow_watch_bookmarks: true,
                ..SelectionPredicate::default()
            },
            ..ListOptions::default()
        }
    }
}

/// The manner in which a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Reads as fast as it can.
    Steady,
    /// Sleeps now and then, so that its channel overflows.
    Slow,
    /// Sleeps for long at the beginning of each watch, so that the window passes it.
    Stalled,
    /// Goes away and comes back.
    Restless,
}

impl Manner {
    pub(crate) const EACH: [Self; 4] = [Self::Steady, Self::Slow, Self::Stalled, Self::Restless];
}

/// The client.
pub(crate) struct Client {
    world: Arc<World>,
    selection: Selection,
    manner: Manner,
    /// The revision of each object, as delivered.
    copy: BTreeMap<String, u64>,
    /// The position: a revision, and the place of the next change in the store's log.
    reached: Option<(u64, usize)>,
    /// True once everything has been delivered.
    complete: bool,
}

/// The end of a watch, which tells the client how to go on.
enum End {
    /// Watch again from where it ended.
    Resume,
    /// List again.
    StartOver,
    /// The server is draining its watches.
    Drained,
}

impl Client {
    pub(crate) fn new(world: &Arc<World>, selection: Selection, manner: Manner) -> Self {
        Self {
            world: Arc::clone(world),
            selection,
            manner,
            copy: BTreeMap::new(),
            reached: None,
            complete: false,
        }
    }

    /// Lists and watches until the watches are drained.
    pub(crate) async fn run(mut self) {
        for _ in 0..ROUNDS_MAX {
            let Some(mut watch) = self.begin().await else {
                if self.world.draining.load(Ordering::SeqCst) {
                    return;
                }
                tokio::time::sleep(RETRY).await;
                continue;
            };
            match self.follow(&mut watch).await {
                End::Drained => return,
                End::Resume => {}
                End::StartOver => self.reached = None,
            }
        }
        panic!("{:?} {:?}: never drained", self.manner, self.selection);
    }

    /// Returns a watch from where the client is, after a list if need be.
    async fn begin(&mut self) -> Option<WatchStream> {
        if self.reached.is_none() && rand::random_bool(0.5) {
            return self.stream_state().await;
        }
        if self.reached.is_none() {
            self.list().await?;
        }
        let (revision, _) = self.reached?;
        self.watch(self.selection.options(Some(revision))).await
    }

    /// Draws the state to begin with, the newest, any, or one that is not older than what is known, and
    /// the revision that it is at least of.
    fn version(&self) -> (Option<u64>, u64) {
        let newest = self.world.store.revision();
        match rand::random_range(0..3) {
            0 => (None, newest),
            1 => (Some(0), 0),
            _ => (Some(newest), newest),
        }
    }

    async fn list(&mut self) -> Option<()> {
        let (version, before) = self.version();
        let (key, options) = (self.selection.key(), self.selection.options(version));
        let list = self.world.pods.get_list(key, options).await;
        let list = accepted(list)?;
        assert!(list.revision >= before, "{} < {before}", list.revision);
        let items = list.items.iter();
        self.copy = items.map(|it| (key_of(it), it.revision())).collect();
        self.reach(list.revision);
        self.compare(list.revision);
        Some(())
    }

    /// Returns a watch that begins with the state.
    async fn stream_state(&mut self) -> Option<WatchStream> {
        let (version, before) = self.version();
        let mut options = self.selection.options(version);
        options.send_initial_events = Some(true);
        let mut watch = self.watch(options).await?;
        self.copy.clear();
        loop {
            // A watch that comes while the type is listed again ends at once.
            match accepted(watch.next().await?)? {
                WatchEvent::Added(object) => {
                    let double = self.copy.insert(key_of(&object), object.revision());
                    assert_eq!(double, None, "{:?}", object.name());
                }
                WatchEvent::Bookmark {
                    revision,
                    initial_events_end: true,
                } => {
                    assert!(revision >= before, "a state of {revision} < {before}");
                    self.reach(revision);
                    self.compare(revision);
                    return Some(watch);
                }
                other => panic!("{other:?} before the end of the state"),
            }
        }
    }

    async fn watch(&self, options: ListOptions) -> Option<WatchStream> {
        accepted(self.world.pods.watch(self.selection.key(), options).await)
    }

    /// Reads a watch to its end.
    async fn follow(&mut self, watch: &mut WatchStream) -> End {
        let late = self.world.draining.load(Ordering::SeqCst);
        if self.manner == Manner::Stalled && !self.complete {
            tokio::time::sleep(STALL).await;
        }
        loop {
            self.note_complete();
            if self.manner == Manner::Slow && one_in(ITEMS_MAX) {
                tokio::time::sleep(NAP).await;
            }
            if self.manner == Manner::Restless && one_in(ITEMS_MAX) && self.may_leave() {
                self.world.seen.note("went away");
                return End::Resume;
            }
            let Ok(item) = tokio::time::timeout(PATIENCE, watch.next()).await else {
                continue;
            };
            match item {
                Some(Ok(WatchEvent::Bookmark { revision, .. })) => self.bookmark(revision),
                Some(Ok(event)) => self.event(&event),
                Some(Err(StorageError::TooOld { .. })) => {
                    self.world.seen.note("too old");
                    return End::StartOver;
                }
                Some(Err(error)) => panic!("a watch ends with {error}"),
                None if self.world.draining.load(Ordering::SeqCst) => {
                    let (reached, last) = (self.reached.map(|it| it.0), self.world.store.last());
                    assert!(late || reached >= last, "no last bookmark: {reached:?}");
                    self.world.seen.note("drained");
                    return End::Drained;
                }
                None => {
                    self.world.seen.note("cut");
                    return End::Resume;
                }
            }
        }
    }

    /// An event must be the next change of what is selected.
    fn event(&mut self, event: &WatchEvent) {
        let (place, expected) = self.next().unwrap_or_else(|| {
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
        let key = key_of(object);
        let received = (&*key, object.revision());
        assert_eq!(received, (&*expected.key, expected.revision));
        assert_eq!(kind, (selects(expected.before), selects(expected.after)));
        let content = if kind.1 {
            expected.after
        } else {
            expected.before
        };
        assert_eq!(object.attributes().labels().get("app"), content);
        if kind.1 {
            self.copy.insert(key, expected.revision);
        } else {
            self.copy.remove(&key);
        }
        self.reached = Some((expected.revision, place + 1));
    }

    /// A bookmark must not go back, and nothing at or below it may be missing.
    fn bookmark(&mut self, revision: u64) {
        let reached = self.reached.map(|it| it.0);
        assert!(Some(revision) >= reached, "a bookmark goes back");
        let newest = self.world.store.revision();
        assert!(revision <= newest, "a bookmark of what is not");
        if let Some((_, next)) = self.next() {
            let (key, at) = (next.key, next.revision);
            assert!(
                at > revision,
                "a bookmark of {revision} overtakes {key} at {at}"
            );
        }
        let last = self.world.draining.load(Ordering::SeqCst);
        let what = if last { "last bookmark" } else { "bookmark" };
        self.world.seen.note(what);
        self.reach(revision);
    }

    /// Returns the change that must be delivered next, and its place.
    fn next(&self) -> Option<(usize, Entry)> {
        let (_, from) = self.reached?;
        let selection = self.selection;
        let selects = |key: &str, label| selection.selects(key, label);
        self.world.store.next(from, selects)
    }

    fn reach(&mut self, revision: u64) {
        self.reached = Some((revision, self.world.store.place_after(revision)));
    }

    /// Returns true if a watch can be resumed here: changes that share a revision come one by one.
    fn may_leave(&self) -> bool {
        let reached = self.reached.map(|it| it.0);
        let next = self.next().map(|(_, next)| next.revision);
        !self.complete && next.is_none_or(|next| Some(next) > reached)
    }

    /// Notices that everything has been delivered, and compares. Nothing may be delivered afterwards.
    fn note_complete(&mut self) {
        let Some(last) = self.world.store.last() else {
            return;
        };
        if !self.complete && self.next().is_none() {
            self.complete = true;
            self.compare(last);
            self.world.complete.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// The copy must be what the store has.
    fn compare(&self, revision: u64) {
        let state = self.world.store.state(revision);
        let selected = state
            .iter()
            .filter(|(key, (_, label))| self.selection.selects(key, Some(label)));
        let stored = selected.map(|(key, (at, _))| (&**key, at));
        let copy = self.copy.iter().map(|(key, at)| (&**key, at));
        assert!(stored.eq(copy), "{:?} at {revision}", self.selection);
    }
}

/// Returns the answer; `None` when the request is to be repeated.
fn accepted<T>(answer: Result<T, StorageError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(
            StorageError::NotReady { .. }
            | StorageError::Timeout { .. }
            | StorageError::TooLargeResourceVersion { .. },
        ) => None,
        Err(error) => panic!("{error}"),
    }
}

fn one_in(times: u32) -> bool {
    rand::random_range(0..times) == 0
}

fn key_of(object: &Object) -> String {
    format!("/pods/{}/{}", object.namespace(), object.name())
}
