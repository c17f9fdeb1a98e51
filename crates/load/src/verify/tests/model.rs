//! A server that keeps every promise, and clients that write down what it tells them.
//!
//! It is as plain as can be: a list of all changes, and a place in it for each watcher. What a step does
//! is drawn at random; connections break, writes are refused or never answered, and still nothing is
//! wrong.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::client::Encoding;
use crate::verify::history::{
    ChangeKind, Get, History, Item, LabelValue, ListRead, ListedPage, Nanos, ObjectKey, ObjectType,
    Refusal, RevisionMatch, SeenItem, Selector, Session, ShownObject, Start, Verb, WatchEnd,
    Watcher, Write, WriteAnswer, WriteId,
};

const KEYS: u32 = 4;
const GROUPS: u8 = 3;
const STEPS: std::ops::Range<usize> = 60..160;
const FIRST_REVISION: u64 = 10;

/// Returns the selections of the watchers. The first two watch everything and never lose their place.
fn selectors() -> Vec<Selector> {
    vec![
        Selector::Everything,
        Selector::Everything,
        Selector::Groups(vec![LabelValue(0)]),
        Selector::Groups(vec![LabelValue(1), LabelValue(2)]),
        Selector::Name(ObjectKey(1)),
        Selector::NotName(ObjectKey(1)),
        Selector::Type(ObjectType(0)),
    ]
}
pub(super) const WATCHERS: usize = 7;
/// The number of watchers, the first ones, that never lose their place.
const FAITHFUL: usize = 2;

/// A step of the model. Numbers are taken modulo the number of objects, writes or watchers.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Begin {
        key: u32,
        group: u8,
        deletes: bool,
        stale: bool,
        unconditional: bool,
    },
    Commit(usize),
    Answer {
        write: usize,
        is_lost: bool,
    },
    Deliver {
        watcher: usize,
        changes: usize,
    },
    Bookmark(usize),
    Reopen {
        watcher: usize,
        how: u8,
        back: u64,
    },
    Read {
        kind: u8,
        selector: usize,
        back: u64,
        page: usize,
    },
    Get(u32),
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let watcher = 0..WATCHERS;
    let step = prop_oneof![
        6 => (0..KEYS, 0..GROUPS, prop::bool::weighted(0.2), prop::bool::weighted(0.1), prop::bool::weighted(0.1))
            .prop_map(|(key, group, deletes, stale, unconditional)| {
                Step::Begin { key, group, deletes, stale, unconditional }
            }),
        6 => any::<usize>().prop_map(Step::Commit),
        6 => (any::<usize>(), prop::bool::weighted(0.1))
            .prop_map(|(write, is_lost)| Step::Answer { write, is_lost }),
        8 => (watcher.clone(), 1..6_usize)
            .prop_map(|(watcher, changes)| Step::Deliver { watcher, changes }),
        2 => watcher.clone().prop_map(Step::Bookmark),
        2 => (watcher, any::<u8>(), 0..20_u64)
            .prop_map(|(watcher, how, back)| Step::Reopen { watcher, how, back }),
        3 => (any::<u8>(), 0..WATCHERS, 0..20_u64, 1..4_usize)
            .prop_map(|(kind, selector, back, page)| Step::Read { kind, selector, back, page }),
        3 => (0..KEYS).prop_map(Step::Get),
    ];
    prop::collection::vec(step, STEPS)
}

/// A change of one object.
#[derive(Clone, Copy, Debug)]
struct Change {
    revision: u64,
    before: Option<ShownObject>,
    after: Option<ShownObject>,
}

#[derive(Debug)]
struct Pending {
    id: WriteId,
    /// The outcome: none yet, the revision at which it happened, or why it did not.
    outcome: Option<Result<u64, Refusal>>,
}

#[derive(Debug)]
pub(super) struct World {
    now: Nanos,
    revision: u64,
    objects: BTreeMap<ObjectKey, ShownObject>,
    log: Vec<Change>,
    pending: Vec<Pending>,
    /// The number of changes that each watcher has been told, and the revision at which its watch began.
    told: Vec<usize>,
    begun: Vec<u64>,
    history: History,
}

/// Returns the history of these steps, to the end.
pub(super) fn play(steps: &[Step]) -> History {
    let mut world = World::new();
    for step in steps {
        world.step(step);
    }
    world.finish()
}

impl World {
    fn new() -> Self {
        let watchers = selectors().into_iter().enumerate();
        let watchers = watchers.map(|(place, selector)| Watcher {
            name: format!("w{place}"),
            selector,
            sessions: Vec::new(),
        });
        let mut world = Self {
            now: 0,
            revision: FIRST_REVISION,
            objects: BTreeMap::new(),
            log: Vec::new(),
            pending: Vec::new(),
            told: vec![0; WATCHERS],
            begun: vec![FIRST_REVISION; WATCHERS],
            history: History {
                watchers: watchers.collect(),
                ..History::default()
            },
        };
        for watcher in 0..WATCHERS {
            world.open_after_list(watcher, FIRST_REVISION);
        }
        world
    }

    fn tick(&mut self) -> Nanos {
        self.now += 10;
        self.now
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Begin {
                key,
                group,
                deletes,
                stale,
                unconditional,
            } => {
                let id = self.begin(ObjectKey(key), LabelValue(group), deletes, stale);
                let write = &mut self.history.writes[id.0 as usize];
                if unconditional && write.verb == Verb::Update {
                    write.base = None;
                }
            }
            Step::Get(key) => self.get(ObjectKey(key)),
            Step::Commit(place) => self.commit(place),
            Step::Answer { write, is_lost } => self.answer(write, is_lost),
            Step::Deliver { watcher, changes } => self.deliver(watcher, changes),
            Step::Bookmark(watcher) => self.bookmark(watcher, false),
            Step::Reopen { watcher, how, back } => self.reopen(watcher, how, back),
            Step::Read {
                kind,
                selector,
                back,
                page,
            } => self.read(kind, selectors().swap_remove(selector), back, page),
        }
    }

    fn begin(&mut self, key: ObjectKey, group: LabelValue, deletes: bool, stale: bool) -> WriteId {
        let there = self.objects.get(&key).copied();
        let verb = match there {
            None => Verb::Create,
            Some(_) if deletes => Verb::Delete,
            Some(_) => Verb::Update,
        };
        let id = WriteId(u32::try_from(self.history.writes.len()).expect("few writes"));
        let invoked = self.tick();
        self.history.writes.push(Write {
            key,
            verb,
            base: there.map(|it| it.revision - u64::from(stale)),
            group: there.filter(|_| deletes).map_or(group, |it| it.group),
            encoding: Encoding::Json,
            invoked,
            answer: WriteAnswer::Uncertain,
        });
        self.pending.push(Pending { id, outcome: None });
        id
    }

    fn get(&mut self, key: ObjectKey) {
        let invoked = self.tick();
        let found = self.objects.get(&key).copied();
        let answered = self.tick();
        self.history.gets.push(Get {
            key,
            invoked,
            answered,
            found,
        });
    }

    fn commit(&mut self, place: usize) {
        let open = self.pending.iter_mut().filter(|it| it.outcome.is_none());
        let mut open: Vec<&mut Pending> = open.collect();
        let count = open.len();
        if count == 0 {
            return;
        }
        let pending = open.swap_remove(place % count);
        let write = self.history.writes[pending.id.0 as usize];
        let before = self.objects.get(&write.key).copied();
        let refusal = match (write.verb, before) {
            (Verb::Create, None) => None,
            (Verb::Create, Some(_)) => Some(Refusal::Conflict),
            (_, None) => Some(Refusal::NotFound),
            (_, Some(before)) => write
                .base
                .is_some_and(|base| base != before.revision)
                .then_some(Refusal::Conflict),
        };
        if let Some(refusal) = refusal {
            pending.outcome = Some(Err(refusal));
            return;
        }
        self.revision += 1 + u64::from(write.key.0 % 2);
        let revision = self.revision;
        pending.outcome = Some(Ok(revision));
        let after = (write.verb != Verb::Delete).then_some(ShownObject {
            key: write.key,
            revision,
            write: pending.id,
            group: write.group,
        });
        match after {
            Some(object) => self.objects.insert(write.key, object),
            None => self.objects.remove(&write.key),
        };
        self.log.push(Change {
            revision,
            before,
            after,
        });
    }

    fn answer(&mut self, place: usize, is_lost: bool) {
        if self.pending.is_empty() {
            return;
        }
        let place = place % self.pending.len();
        let Some(outcome) = self.pending[place].outcome else {
            return;
        };
        let id = self.pending.swap_remove(place).id;
        let at = self.tick();
        let write = &mut self.history.writes[id.0 as usize];
        write.answer = match outcome {
            _ if is_lost => WriteAnswer::Uncertain,
            Err(refusal) => WriteAnswer::Refused { at, refusal },
            Ok(revision) => WriteAnswer::Acknowledged {
                at,
                revision: (write.verb != Verb::Delete).then_some(revision),
            },
        };
    }

    fn session(&mut self, watcher: usize) -> &mut Session {
        let sessions = &mut self.history.watchers[watcher].sessions;
        sessions.last_mut().expect("an open watch")
    }

    fn show(&mut self, watcher: usize, item: Item) {
        let at = self.tick();
        self.session(watcher).seen.push(SeenItem { at, item });
    }

    fn deliver(&mut self, watcher: usize, changes: usize) {
        let from = self.told[watcher];
        let to = self.log.len().min(from + changes);
        for place in from..to {
            let change = self.log[place];
            let selector = &self.history.watchers[watcher].selector;
            if let Some(item) = event(&change, selector) {
                self.show(watcher, item);
            }
        }
        self.told[watcher] = to.max(from);
    }

    /// Returns the revision up to which a watcher was told everything.
    fn told_revision(&self, watcher: usize) -> u64 {
        let told = self.told[watcher];
        let last = told.checked_sub(1).map(|place| self.log[place].revision);
        last.unwrap_or(0).max(self.begun[watcher])
    }

    fn bookmark(&mut self, watcher: usize, ends_initial: bool) {
        let revision = self.told_revision(watcher);
        let item = Item::Bookmark {
            revision,
            ends_initial,
        };
        self.show(watcher, item);
    }

    fn reopen(&mut self, watcher: usize, how: u8, back: u64) {
        self.session(watcher).end = WatchEnd::Closed;
        let is_faithful = watcher < FAITHFUL;
        let revision = self.revision_back(back);
        match how % 4 {
            0 if !is_faithful => self.open_after_list(watcher, revision),
            1 if !is_faithful => self.open_with_state(watcher, how, revision),
            _ => self.resume(watcher),
        }
    }

    fn resume(&mut self, watcher: usize) {
        let sessions = &self.history.watchers[watcher].sessions;
        let last = sessions.last().expect("a watch before");
        let reached = match (&last.start, last.seen.last()) {
            (_, Some(seen)) => seen.item.revision(),
            (Start::List { revision, .. }, None) => *revision,
            (Start::Resume { after }, None) => *after,
            (Start::InitialEvents { .. }, None) => unreachable!("it has an end"),
        };
        self.open(watcher, Start::Resume { after: reached });
        self.begin_at(watcher, reached);
    }

    fn open(&mut self, watcher: usize, start: Start) {
        let opened = self.tick();
        self.history.watchers[watcher].sessions.push(Session {
            opened,
            start,
            seen: Vec::new(),
            end: WatchEnd::Closed,
        });
    }

    fn open_after_list(&mut self, watcher: usize, revision: u64) {
        let selector = self.history.watchers[watcher].selector.clone();
        let objects = self.state(revision, &selector);
        self.open(watcher, Start::List { revision, objects });
        self.begin_at(watcher, revision);
    }

    fn begin_at(&mut self, watcher: usize, revision: u64) {
        self.told[watcher] = self.changes_until(revision);
        self.begun[watcher] = revision;
    }

    /// Opens a watch with initial events, which may break off before they are complete, or be overtaken by changes.
    fn open_with_state(&mut self, watcher: usize, how: u8, revision: u64) {
        let any = how & 8 == 0;
        let revision = if any { revision } else { self.revision };
        let selector = self.history.watchers[watcher].selector.clone();
        let objects = self.state(revision, &selector);
        if how & 16 == 0 {
            self.open(watcher, Start::InitialEvents { any });
            for object in objects.iter().take(1) {
                self.show(watcher, added(*object));
            }
            self.session(watcher).end = WatchEnd::Broken("in the middle".to_owned());
        }
        self.open(watcher, Start::InitialEvents { any });
        for object in objects {
            self.show(watcher, added(object));
        }
        self.begin_at(watcher, revision);
        self.deliver(watcher, usize::from(how >> 5));
        self.bookmark(watcher, true);
    }

    fn changes_until(&self, revision: u64) -> usize {
        self.log.partition_point(|it| it.revision <= revision)
    }

    fn revision_back(&self, back: u64) -> u64 {
        self.revision.saturating_sub(back).max(FIRST_REVISION)
    }

    fn state(&self, revision: u64, selector: &Selector) -> Vec<ShownObject> {
        let mut state = BTreeMap::new();
        for change in &self.log[..self.changes_until(revision)] {
            match (change.before, change.after) {
                (_, Some(after)) => state.insert(after.key, after),
                (Some(before), None) => state.remove(&before.key),
                (None, None) => None,
            };
        }
        let selected = state.into_values();
        selected
            .filter(|it| selector.selects(it.key, it.group))
            .collect()
    }

    fn read(&mut self, kind: u8, selector: Selector, back: u64, page: usize) {
        let older = self.revision_back(back);
        let (revision_match, revision) = match kind % 4 {
            0 => (RevisionMatch::Any, older),
            1 => (RevisionMatch::Newest, self.revision),
            2 => (RevisionMatch::NotOlderThan(older), self.revision),
            _ => (RevisionMatch::Exact(older), older),
        };
        let objects = self.state(revision, &selector);
        let mut pages: Vec<Vec<ShownObject>> = objects.chunks(page).map(<[_]>::to_vec).collect();
        if pages.is_empty() {
            pages.push(Vec::new());
        }
        let pages = pages.into_iter().map(|objects| ListedPage {
            invoked: self.tick(),
            answered: self.tick(),
            revision,
            objects,
        });
        let pages = pages.collect();
        self.history.reads.push(ListRead {
            revision_match,
            selector,
            limit: Some(page),
            encoding: Encoding::Json,
            pages,
        });
    }

    /// Answers or loses what is open, tells every watcher the rest, and reads the final state.
    fn finish(mut self) -> History {
        for place in 0..self.pending.len() {
            if place % 3 > 0 {
                self.commit(0);
            }
        }
        while self.pending.iter().any(|it| it.outcome.is_some()) {
            for place in (0..self.pending.len()).rev() {
                self.answer(place, false);
            }
        }
        self.read(1, Selector::Everything, 0, 100);
        for watcher in 0..WATCHERS {
            self.deliver(watcher, self.log.len());
            self.session(watcher).end = WatchEnd::Settled;
        }
        self.history.final_read = Some(self.history.reads.len() - 1);
        self.history
    }
}

fn added(object: ShownObject) -> Item {
    Item::Event {
        kind: ChangeKind::Added,
        object,
    }
}

/// Returns the event of a change for a selector.
fn event(change: &Change, selector: &Selector) -> Option<Item> {
    let selected = |it: &ShownObject| selector.selects(it.key, it.group);
    let before = change.before.filter(selected);
    let after = change.after.filter(selected);
    let (kind, object) = match (before, after) {
        (None, None) => return None,
        (None, Some(after)) => (ChangeKind::Added, after),
        (Some(_), Some(after)) => (ChangeKind::Modified, after),
        (Some(before), None) => {
            let revision = change.revision;
            (ChangeKind::Deleted, ShownObject { revision, ..before })
        }
    };
    Some(Item::Event { kind, object })
}
