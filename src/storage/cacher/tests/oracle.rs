//! A whole cache against a plain list of everything that happened: random steps, each of whose
//! answers the list knows.
//!
//! Steps write, in one revision or in many; begin watches of every kind and read of them as much or
//! as little as they like; list at any revision and go on with pages later; let time pass, break the
//! streams, and lose history. Watches follow others and take over again. What a watch may not do is leave anything
//! out, say anything twice, or end before the window has passed it.

use std::collections::BTreeMap;

use futures::FutureExt;
use proptest::prelude::*;

use super::scripted::STORE_REVISION;
use super::*;
use crate::meta::{FieldSelector, VersionMatch};
use crate::storage::FollowOutcome;

/// The number of cases that are tried, and the most steps that one has.
const CASES: u32 = 150;
const STEPS_MAX: usize = 50;

/// The number of events that are kept in any case.
const KEPT_MIN: usize = 8;

/// The keys that are written.
const KEYS: [&str; 8] = [
    "/pods/a/p",
    "/pods/a/q",
    "/pods/a-b/p",
    "/pods/b/p",
    "/pods/b/q",
    "/pods/b/r",
    "/pods/b0/p",
    "/services/a/s",
];

const LABELS: [&str; 2] = ["x", "y"];

/// A label, or none when there is no object.
type Label = Option<&'static str>;

/// A selection.
#[derive(Clone, Copy, Debug)]
enum Selection {
    All,
    Namespace,
    Labelled,
    /// By two terms: watches are filed under one.
    NamedAndLabelled,
    Single,
}

impl Selection {
    fn key(self) -> &'static str {
        match self {
            Self::All | Self::Labelled | Self::NamedAndLabelled => "/pods/",
            Self::Namespace => "/pods/b/",
            Self::Single => "/pods/b/q",
        }
    }

    fn selects(self, key: &str, label: Label) -> bool {
        let within = key.starts_with(self.key());
        label.is_some_and(|label| match self {
            Self::All | Self::Namespace => within,
            Self::Labelled => within && label == "x",
            Self::NamedAndLabelled => within && label == "x" && key.ends_with("/p"),
            Self::Single => key == self.key(),
        })
    }

    fn options(self, version: Option<u64>) -> ListOptions {
        let mut options = bookmarked(version);
        options.recursive = !matches!(self, Self::Single);
        if matches!(self, Self::Labelled | Self::NamedAndLabelled) {
            options = labelled("x", options);
        }
        if matches!(self, Self::NamedAndLabelled) {
            let field = FieldSelector::parse("metadata.name=p");
            options.predicate.field = field.expect("a selector");
        }
        options
    }
}

/// The state or revision with which a watch begins.
#[derive(Clone, Copy, Debug)]
enum From {
    /// With the state, as a stream that marks its end, or as of old.
    State { marked: bool, fresh: bool },
    /// The revision that is this many before the newest.
    Back(u64),
    /// The revision that is this many after the newest.
    Ahead(u64),
}

/// The version that a list asks for.
#[derive(Clone, Copy, Debug)]
enum Version {
    Newest,
    Any,
    /// At, or not older than, so many revisions back.
    Exact(u64),
    NotOlder(u64),
}

/// A step of the model.
#[derive(Clone, Debug)]
enum Step {
    /// Keys and their new labels, in one revision or in one each.
    Write {
        changes: Vec<(usize, Option<usize>)>,
        together: bool,
    },
    Watch {
        selection: Selection,
        from: From,
        bookmarks: bool,
    },
    /// A watch is read so many times.
    Read {
        watch: usize,
        items: usize,
    },
    /// A watch follows the leader of another one, which gets one if it has none.
    Follow {
        watch: usize,
        other: usize,
    },
    /// A watch takes over from its leader.
    TakeOver {
        watch: usize,
    },
    List {
        selection: Selection,
        version: Version,
        limit: u64,
    },
    /// The next page of a list that was begun.
    Page {
        list: usize,
    },
    Pass {
        seconds: u64,
    },
    Break,
    LoseHistory,
}

fn selections() -> impl Strategy<Value = Selection> {
    use Selection::{All, Labelled, NamedAndLabelled, Namespace, Single};
    prop::sample::select(vec![All, Namespace, Labelled, NamedAndLabelled, Single])
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = (0..KEYS.len(), prop::option::weighted(0.8, 0..LABELS.len()));
    let from = prop_oneof![
        (any::<bool>(), any::<bool>()).prop_map(|(marked, fresh)| From::State { marked, fresh }),
        (0..40_u64).prop_map(From::Back),
        (1..5_u64).prop_map(From::Ahead),
    ];
    let version = prop_oneof![
        Just(Version::Newest),
        Just(Version::Any),
        (0..30_u64).prop_map(Version::Exact),
        (0..30_u64).prop_map(Version::NotOlder),
    ];
    // Often so few that a revision is left half read.
    let items = prop_oneof![2 => 0..4_usize, 1 => 0..60_usize];
    let step = prop_oneof![
        8 => (prop::collection::vec(change, 1..40), any::<bool>())
            .prop_map(|(changes, together)| Step::Write { changes, together }),
        5 => (selections(), from, any::<bool>())
            .prop_map(|(selection, from, bookmarks)| Step::Watch { selection, from, bookmarks }),
        6 => (any::<usize>(), items).prop_map(|(watch, items)| Step::Read { watch, items }),
        4 => (any::<usize>(), any::<usize>())
            .prop_map(|(watch, other)| Step::Follow { watch, other }),
        2 => any::<usize>().prop_map(|watch| Step::TakeOver { watch }),
        4 => (selections(), version, 0..4_u64)
            .prop_map(|(selection, version, limit)| Step::List { selection, version, limit }),
        3 => any::<usize>().prop_map(|list| Step::Page { list }),
        2 => (1..100_u64).prop_map(|seconds| Step::Pass { seconds }),
        1 => Just(Step::Break),
        1 => Just(Step::LoseHistory),
    ];
    prop::collection::vec(step, 1..STEPS_MAX)
}

/// Windows that are bounded by events, by age, by bytes.
fn windows() -> impl Strategy<Value = WindowLimits> {
    let long = Duration::from_secs(1 << 30);
    let limits = |age, events_max, bytes_max| WindowLimits {
        age,
        events_min: KEPT_MIN,
        events_max,
        bytes_max,
    };
    prop::sample::select(vec![
        limits(long, KEPT_MIN, usize::MAX),
        limits(long, 50, usize::MAX),
        limits(Duration::from_secs(75), usize::MAX, usize::MAX),
        limits(long, usize::MAX, 64 << 10),
        WindowLimits::default(),
    ])
}

/// A change, and what was there before.
#[derive(Clone, Debug)]
struct Entry {
    revision: u64,
    key: &'static str,
    before: Label,
    after: Label,
}

/// Everything that has happened.
#[derive(Default)]
struct History {
    log: Vec<Entry>,
    /// The revision at which the cache was filled last.
    filled: u64,
    /// True if the window's length is determined by the number of events.
    by_events: bool,
}

impl History {
    fn content(&self, revision: u64) -> BTreeMap<&'static str, (u64, &'static str)> {
        let mut content = BTreeMap::new();
        for entry in self.log.iter().filter(|it| it.revision <= revision) {
            match entry.after {
                Some(label) => content.insert(entry.key, (entry.revision, label)),
                None => content.remove(entry.key),
            };
        }
        content
    }

    /// Name and revision of what is selected, in key order.
    fn selected(&self, revision: u64, selection: Selection) -> Vec<(&'static str, u64)> {
        let content = self.content(revision).into_iter();
        let selected = content.filter(|(key, (_, label))| selection.selects(key, Some(label)));
        selected.map(|(key, (at, _))| (key, at)).collect()
    }

    /// Returns the place of the first change after a revision.
    fn after(&self, revision: u64) -> usize {
        self.log.partition_point(|it| it.revision <= revision)
    }

    /// Returns the first change from a place on that a selection sees, and its place.
    fn next(&self, from: usize, selection: Selection) -> Option<(usize, &Entry)> {
        let sees = |label, it: &Entry| selection.selects(it.key, label);
        let mut later = self.log.iter().enumerate().skip(from);
        later.find(|(_, it)| sees(it.before, it) || sees(it.after, it))
    }

    /// Returns true if the window may have passed a revision.
    fn may_be_gone(&self, revision: u64) -> bool {
        let later = &self.log[self.after(revision)..];
        let pods = later.iter().filter(|it| it.key.starts_with("/pods/"));
        revision < self.filled || !self.by_events || pods.count() > KEPT_MIN
    }
}

/// A watch and what it has delivered.
struct Watched {
    stream: WatchStream,
    selection: Selection,
    bookmarks: bool,
    /// The initial events that are still to come, and whether a bookmark marks their end.
    state: std::collections::VecDeque<(&'static str, u64)>,
    end: Option<u64>,
    /// Changes at or before this revision are not delivered.
    start_revision: u64,
    /// The revision of what was delivered last, and the place of the next change.
    reached: u64,
    place: usize,
    /// True if that was an event: a bookmark covers all of its revision.
    by_event: bool,
    /// True if the cache has been filled again since it began.
    cut: bool,
    ended: bool,
    /// The number of the leader that it follows.
    leader: Option<usize>,
    /// True if it has just taken over from a leader that had delivered everything.
    has_all: bool,
}

/// A list that has more pages.
struct Pages {
    selection: Selection,
    limit: u64,
    token: String,
    revision: u64,
    /// The objects that are still to come.
    left: Vec<(&'static str, u64)>,
}

struct Model {
    world: World,
    history: History,
    watches: Vec<Watched>,
    /// The leaders, by their numbers.
    leaders: Vec<WatchStream>,
    lists: Vec<Pages>,
}

impl Model {
    async fn new(limits: WindowLimits) -> Self {
        let history = History {
            filled: 1,
            by_events: limits.bytes_max == usize::MAX,
            ..History::default()
        };
        Self {
            world: World::new(limits).await,
            history,
            watches: Vec::new(),
            leaders: Vec::new(),
            lists: Vec::new(),
        }
    }

    fn revision(&self) -> u64 {
        self.world.script.state().revision
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Write { changes, together } => self.write(&changes, together),
            Step::Watch {
                selection,
                from,
                bookmarks,
            } => self.watch(selection, from, bookmarks).await,
            Step::Read { watch, items } if !self.watches.is_empty() => {
                let watch = watch % self.watches.len();
                match self.watches[watch].leader {
                    Some(leader) => self.lead(leader, items),
                    None => self.watches[watch].read(&self.history, items),
                }
            }
            Step::Follow { watch, other } if !self.watches.is_empty() => {
                let count = self.watches.len();
                self.follow(watch % count, other % count);
            }
            Step::TakeOver { watch } if !self.watches.is_empty() => {
                let watch = watch % self.watches.len();
                self.watches[watch].take_over(&self.leaders);
            }
            Step::List {
                selection,
                version,
                limit,
            } => self.list(selection, version, limit).await,
            Step::Page { list } if !self.lists.is_empty() => {
                let list = self.lists.swap_remove(list % self.lists.len());
                self.page(list).await;
            }
            Step::Pass { seconds } => self.world.clock.sleep(Duration::from_secs(seconds)).await,
            Step::Break => self.world.script.break_streams(),
            Step::LoseHistory => self.lose_history().await,
            Step::Read { .. } | Step::Follow { .. } | Step::TakeOver { .. } | Step::Page { .. } => {
            }
        }
        // A broken stream is opened again after a while.
        self.world.clock.sleep(Duration::from_millis(200)).await;
    }

    fn write(&mut self, changes: &[(usize, Option<usize>)], together: bool) {
        let mut state = self.history.content(u64::MAX);
        let mut batch: Vec<(&str, Label)> = Vec::new();
        let mut revision = self.revision() + 1;
        for (key, label) in changes {
            let (key, after) = (KEYS[*key], label.map(|label| LABELS[label]));
            let before = state.get(key).map(|(_, label)| *label);
            let twice = together && batch.iter().any(|(other, _)| *other == key);
            if twice || (before.is_none() && after.is_none()) {
                continue;
            }
            match after {
                Some(label) => state.insert(key, (revision, label)),
                None => state.remove(key),
            };
            batch.push((key, after));
            self.history.log.push(Entry {
                revision,
                key,
                before,
                after,
            });
            if !together {
                self.world.script.together(&batch);
                batch.clear();
                revision += 1;
            }
        }
        if !batch.is_empty() {
            self.world.script.together(&batch);
        }
    }

    async fn watch(&mut self, selection: Selection, from: From, bookmarks: bool) {
        let newest = self.revision();
        let mut options = match from {
            From::State { fresh, .. } => selection.options((!fresh).then_some(0)),
            From::Back(back) => selection.options(Some(newest.saturating_sub(back).max(1))),
            From::Ahead(ahead) => selection.options(Some(newest + ahead)),
        };
        let marked = matches!(from, From::State { marked: true, .. });
        options.send_initial_events = marked.then_some(true);
        options.predicate.allow_watch_bookmarks = bookmarks || marked;
        let with_state = matches!(from, From::State { .. });
        let reached = match options.resource_version {
            Some(version) if !with_state => version.0,
            _ => newest,
        };
        let state = with_state.then(|| self.history.selected(newest, selection));
        let stream = self.world.pods.watch(selection.key(), options).await;
        self.watches.push(Watched {
            stream: stream.expect("ready"),
            selection,
            bookmarks: bookmarks || marked,
            state: state.unwrap_or_default().into(),
            end: marked.then_some(newest),
            start_revision: reached,
            reached,
            place: 0,
            by_event: false,
            cut: false,
            ended: false,
            leader: None,
            has_all: false,
        });
    }

    fn follow(&mut self, watch: usize, other: usize) {
        if self.watches[other].leader.is_none() {
            let Some(mut leader) = self.watches[other].stream.leader() else {
                return;
            };
            if self.watches[other].stream.follow(&mut leader) != FollowOutcome::Follows {
                let watch = &self.watches[other];
                let is_ahead = watch.start_revision > self.revision();
                assert!(is_ahead || self.history.may_be_gone(watch.start_revision));
                return;
            }
            self.watches[other].leader = Some(self.leaders.len());
            self.leaders.push(leader);
        }
        let (Some(leader), None) = (self.watches[other].leader, self.watches[watch].leader) else {
            return;
        };
        let outcome = self.watches[watch].stream.follow(&mut self.leaders[leader]);
        match outcome {
            FollowOutcome::Follows => self.watches[watch].leader = Some(leader),
            FollowOutcome::NotLevel => {}
            FollowOutcome::Unlike => {
                let (one, other) = (&self.watches[watch], &self.watches[other]);
                let alike = std::mem::discriminant(&one.selection)
                    == std::mem::discriminant(&other.selection)
                    && one.bookmarks == other.bookmarks;
                assert!(!alike, "{:?}", one.selection);
            }
        }
    }

    /// Reads so many items of a leader, each for all that follow it.
    fn lead(&mut self, leader: usize, items: usize) {
        for _ in 0..items {
            let stream = &mut self.leaders[leader];
            let next = tokio::task::unconstrained(stream.next()).now_or_never();
            let following = self
                .watches
                .iter_mut()
                .filter(|it| it.leader == Some(leader));
            match next {
                None => {
                    following.for_each(|it| it.is_up_to_date(&self.history));
                    return;
                }
                Some(Some(Ok(event))) => {
                    following.for_each(|it| it.receive(&self.history, &event));
                }
                Some(None | Some(Err(_))) => {
                    following.for_each(|it| it.take_over(&self.leaders));
                    return;
                }
            }
        }
    }

    async fn list(&mut self, selection: Selection, version: Version, limit: u64) {
        let newest = self.revision();
        let back = |back| newest.saturating_sub(back).max(1);
        let mut options = match version {
            Version::Newest => selection.options(None),
            Version::Any => selection.options(Some(0)),
            Version::Exact(revisions) => ListOptions {
                version_match: Some(VersionMatch::Exact),
                ..selection.options(Some(back(revisions)))
            },
            Version::NotOlder(revisions) => ListOptions {
                version_match: Some(VersionMatch::NotOlderThan),
                ..selection.options(Some(back(revisions)))
            },
        };
        options.predicate.limit = limit;
        let (revision, limit) = match version {
            Version::Exact(revisions) => (back(revisions), limit),
            Version::Any => (newest, 0),
            Version::Newest | Version::NotOlder(_) => (newest, limit),
        };
        let list = self
            .world
            .delegator
            .get_list(selection.key(), options)
            .await;
        let whole = self.history.selected(revision, selection);
        self.compare(list.expect("a list"), selection, limit, revision, whole);
    }

    async fn page(&mut self, list: Pages) {
        let mut options = list.selection.options(None);
        options.predicate.limit = list.limit;
        options.predicate.continue_token = list.token;
        let page = self.world.delegator.get_list(list.selection.key(), options);
        let page = page.await.expect("a page");
        self.compare(page, list.selection, list.limit, list.revision, list.left);
    }

    /// A list must begin with what is expected, and remembers the rest for its next page.
    fn compare(
        &mut self,
        list: List,
        selection: Selection,
        limit: u64,
        revision: u64,
        mut expected: Vec<(&'static str, u64)>,
    ) {
        if list.revision == STORE_REVISION {
            // Single keys at a revision are always the store's.
            let single = matches!(selection, Selection::Single);
            assert!(
                single || self.history.may_be_gone(revision),
                "at {revision}"
            );
            return;
        }
        let items = list.items.iter();
        let listed: Vec<_> = items
            .map(|it| {
                let key = format!("/pods/{}/{}", it.namespace(), it.name());
                (key, it.revision())
            })
            .collect();
        let left = match usize::try_from(limit) {
            Ok(limit) if limit > 0 && limit < expected.len() => expected.split_off(limit),
            _ => Vec::new(),
        };
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(key, at)| (key.to_owned(), at))
            .collect();
        assert_eq!((list.revision, listed), (revision, expected));
        // A selector does not know whether what is left is selected.
        assert!(
            left.is_empty() || list.continue_token.is_some(),
            "a page is missing"
        );
        if let Some(token) = list.continue_token {
            self.lists.push(Pages {
                selection,
                limit,
                token,
                revision,
                left,
            });
        }
    }

    async fn lose_history(&mut self) {
        self.world.script.lose_history();
        self.world.settle().await;
        self.world.pods.ready().await.expect("listed again");
        self.history.filled = self.revision();
        for watch in &mut self.watches {
            watch.cut = true;
        }
    }

    /// Reads every watch to its end.
    fn finish(mut self) {
        for leader in 0..self.leaders.len() {
            self.lead(leader, usize::MAX);
        }
        for watch in &mut self.watches {
            watch.has_all = watch.leader.is_some();
            watch.take_over(&self.leaders);
            watch.read(&self.history, usize::MAX);
        }
    }
}

impl Watched {
    /// Returns the change that must be delivered next. A watch from a later version skips those before it.
    fn next<'a>(&self, history: &'a History) -> Option<(usize, &'a Entry)> {
        let from = self.place.max(history.after(self.start_revision));
        history.next(from, self.selection)
    }

    fn read(&mut self, history: &History, items: usize) {
        for _ in 0..items {
            if self.ended {
                return;
            }
            // tokio would have a task that has read much look as if there were nothing more.
            let next = tokio::task::unconstrained(self.stream.next());
            let Some(item) = next.now_or_never() else {
                self.is_up_to_date(history);
                return;
            };
            match item {
                Some(Ok(event)) => self.receive(history, &event),
                Some(Err(StorageError::TooOld { requested, .. })) => {
                    assert!(self.state.is_empty() && self.end.is_none(), "half a state");
                    assert!(!self.has_all, "the window does not pass what is up to date");
                    let complete = self.complete(history, requested);
                    assert!(history.may_be_gone(complete), "{requested} is kept");
                    self.ended = true;
                }
                Some(Err(error)) => panic!("{error}"),
                None => {
                    assert!(self.cut, "{:?} ends", self.selection);
                    self.ended = true;
                }
            }
        }
    }

    /// Checks that everything that it selects has been delivered.
    fn is_up_to_date(&self, history: &History) {
        assert!(self.state.is_empty() && self.end.is_none(), "no state");
        let next = self.next(history);
        assert!(next.is_none(), "{:?}: {next:?} is left out", self.selection);
    }

    fn take_over(&mut self, leaders: &[WatchStream]) {
        if let Some(leader) = self.leader.take() {
            self.stream.take_over(&leaders[leader]);
        }
    }

    /// Returns the revision up to which everything was delivered, given the last one. Changes that share a revision are
    /// delivered one by one, so the window may pass the rest of them.
    fn complete(&self, history: &History, revision: u64) -> u64 {
        let later = history.log.iter().skip(self.place);
        let mut rest = later.take_while(|it| it.revision <= revision);
        if self.by_event && rest.any(|it| it.revision == revision && it.key.starts_with("/pods/")) {
            revision - 1
        } else {
            revision
        }
    }

    fn receive(&mut self, history: &History, event: &WatchEvent) {
        if let WatchEvent::Bookmark {
            revision,
            initial_events_end,
        } = event
        {
            return self.bookmark(history, *revision, *initial_events_end);
        }
        let (sign, object) = match event {
            WatchEvent::Added(object) => ((false, true), object),
            WatchEvent::Modified(object) | WatchEvent::Replaced { object, .. } => {
                ((true, true), object)
            }
            WatchEvent::Deleted(object) => ((true, false), object),
            WatchEvent::Bookmark { .. } => return,
        };
        let key = format!("/pods/{}/{}", object.namespace(), object.name());
        if let Some(expected) = self.state.pop_front() {
            assert_eq!(sign, (false, true), "the state");
            assert_eq!((&*key, object.revision()), expected, "the state");
            return;
        }
        assert_eq!(self.end, None, "the end of the state is not marked");
        let Some((place, entry)) = self.next(history) else {
            panic!("{:?}: {event:?} of nothing", self.selection);
        };
        let selects = |label| self.selection.selects(entry.key, label);
        assert_eq!((&*key, object.revision()), (entry.key, entry.revision));
        assert_eq!(sign, (selects(entry.before), selects(entry.after)), "{key}");
        let content = if sign.1 { entry.after } else { entry.before };
        assert_eq!(object.attributes().labels().get("app"), content, "{key}");
        self.reached = entry.revision;
        self.place = place + 1;
        self.by_event = true;
    }

    fn bookmark(&mut self, history: &History, revision: u64, ends_state: bool) {
        assert!(self.bookmarks && self.state.is_empty(), "a bookmark");
        if ends_state {
            assert_eq!(self.end.take(), Some(revision), "the end of the state");
            return;
        }
        assert_eq!(self.end, None, "the end of the state is not marked");
        assert!(revision >= self.reached, "a bookmark goes back");
        if let Some((_, next)) = self.next(history) {
            assert!(next.revision > revision, "{revision} overtakes {next:?}");
        }
        self.reached = revision;
        self.by_event = false;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    /// Whatever happens, the cache says what the plain list says.
    #[test]
    fn the_cache_says_what_happened(limits in windows(), steps in steps()) {
        let runtime = paused_runtime();
        runtime.block_on(async {
            let mut model = Model::new(limits).await;
            for step in steps {
                model.step(step).await;
            }
            model.finish();
        });
    }
}
