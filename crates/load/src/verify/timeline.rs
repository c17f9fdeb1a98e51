//! The changes that must have happened, in the order of revisions, put together from everything that clients were told.
//!
//! The answers of writes say most. What was never answered, and when a deletion happened, only watchers
//! and lists can tell. What a single witness claims against an answer is not believed; the checks name it.
//! An object is doubtful when something may have happened to it that no witness could have seen; of
//! such an object only what is certain is demanded.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::coverage::{covers, intervals};
use super::history::{
    ChangeKind, History, Item, LabelValue, ObjectKey, Selector, ShownObject, Verb, Write,
    WriteAnswer, WriteId,
};
use super::violation::{Promise, Violation};

/// A change of one object, at one revision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectChange {
    pub(crate) revision: u64,
    pub(crate) key: ObjectKey,
    pub(crate) effect: ChangeEffect,
    /// The state before the change.
    pub(crate) previous: ObjectState,
}

/// The effect of a change on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeEffect {
    Put {
        write: WriteId,
        group: LabelValue,
    },
    Deleted,
    /// It took the object out of a selection: a deletion, or a change of its label.
    Unclear,
}

/// The state of an object at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectState {
    Absent,
    Present(ShownObject),
    Unknown,
}

/// All changes, and what they say of the writes.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    changes: Vec<ObjectChange>,
    /// The revision at which each write happened, as far as it is known.
    revisions: Vec<Option<u64>>,
    /// The write of each revision, as far as it is known.
    writes: HashMap<u64, WriteId>,
    /// Objects of which not everything could be seen.
    doubtful: HashSet<ObjectKey>,
    /// The contradictions among witnesses.
    pub(crate) contradictions: Vec<Violation>,
}

impl Timeline {
    pub(crate) fn new(history: &History) -> Self {
        let mut evidence = Evidence::default();
        evidence.add_writes(history);
        evidence.add_objects(history);
        evidence.add_deletions(history);
        let Evidence {
            effects,
            mut revisions,
            contradictions,
        } = evidence;
        let mut changes = in_order(&effects);
        resolve_deletions(history, &changes, &mut revisions);
        let doubtful = doubtful(history, &changes, &revisions);
        for change in &mut changes {
            if doubtful.contains(&change.key) {
                change.previous = ObjectState::Unknown;
            }
        }
        let writes = (0..).map(WriteId).zip(&revisions);
        let writes = writes.filter_map(|(id, revision)| Some(((*revision)?, id)));
        Self {
            changes,
            writes: writes.collect(),
            revisions,
            doubtful,
            contradictions,
        }
    }

    /// Returns all changes, by revision.
    pub(crate) fn changes(&self) -> &[ObjectChange] {
        &self.changes
    }

    /// Returns the changes after one revision up to another.
    pub(crate) fn between(&self, after: u64, until: u64) -> &[ObjectChange] {
        let from = self.changes.partition_point(|it| it.revision <= after);
        let to = self.changes.partition_point(|it| it.revision <= until);
        &self.changes[from..to.max(from)]
    }

    /// Returns the change of a revision.
    pub(crate) fn at(&self, revision: u64) -> Option<&ObjectChange> {
        let found = self
            .changes
            .binary_search_by_key(&revision, |it| it.revision);
        found.ok().map(|place| &self.changes[place])
    }

    /// Returns when a write happened, if that is known.
    pub(crate) fn revision_of(&self, write: WriteId) -> Option<u64> {
        *self.revisions.get(write.0 as usize)?
    }

    /// Returns the write that happened at a revision.
    pub(crate) fn write_at(&self, revision: u64) -> Option<WriteId> {
        self.writes.get(&revision).copied()
    }

    pub(crate) fn is_doubtful(&self, key: ObjectKey) -> bool {
        self.doubtful.contains(&key)
    }
}

impl ObjectChange {
    /// Returns the object after it.
    pub(crate) fn after(&self) -> ObjectState {
        match self.effect {
            ChangeEffect::Put { write, group } => ObjectState::Present(ShownObject {
                key: self.key,
                revision: self.revision,
                write,
                group,
            }),
            ChangeEffect::Deleted => ObjectState::Absent,
            ChangeEffect::Unclear => ObjectState::Unknown,
        }
    }
}

/// The evidence while the timeline is made: what each revision did, and which revision each write has.
#[derive(Default)]
struct Evidence {
    effects: BTreeMap<u64, (ObjectKey, ChangeEffect)>,
    revisions: Vec<Option<u64>>,
    contradictions: Vec<Violation>,
}

impl Evidence {
    fn add_writes(&mut self, history: &History) {
        for (id, write) in history.named_writes() {
            let revision = match write.answer {
                WriteAnswer::Acknowledged { revision, .. } => revision,
                WriteAnswer::Refused { .. } | WriteAnswer::Uncertain => None,
            };
            self.revisions.push(revision);
            let Some(revision) = revision else {
                continue;
            };
            let effect = match write.verb {
                Verb::Create | Verb::Update => ChangeEffect::Put {
                    write: id,
                    group: write.group,
                },
                Verb::Delete => ChangeEffect::Deleted,
            };
            let earlier = *self.effects.entry(revision).or_insert((write.key, effect));
            if earlier != (write.key, effect) {
                self.contradict(history, revision, earlier, (id, write));
            }
        }
    }

    fn contradict(
        &mut self,
        history: &History,
        revision: u64,
        (key, effect): (ObjectKey, ChangeEffect),
        (id, write): (WriteId, &Write),
    ) {
        let message = format!("revision {revision} is also that of a change of {key}");
        let violation = Violation::new(Promise::Unique, id.to_string(), message);
        let first = match effect {
            ChangeEffect::Put { write, .. } => history.write(write),
            ChangeEffect::Deleted | ChangeEffect::Unclear => None,
        };
        self.contradictions
            .push(violation.shown_by_all(first).shown_by(write));
    }

    /// Takes the objects that watches and reads showed as evidence of which unanswered writes happened, and when.
    fn add_objects(&mut self, history: &History) {
        for object in agreed_objects(history) {
            let Some(revision) = self.revisions.get_mut(object.write.0 as usize) else {
                continue;
            };
            if *revision.get_or_insert(object.revision) != object.revision {
                continue;
            }
            let effect = ChangeEffect::Put {
                write: object.write,
                group: object.group,
            };
            self.effects
                .entry(object.revision)
                .or_insert((object.key, effect));
        }
    }

    /// Takes the deletions that watchers saw as evidence; first of those who cannot confuse them with objects that
    /// leave their selection.
    fn add_deletions(&mut self, history: &History) {
        for can_be_left in [false, true] {
            let watchers = history.watchers.iter();
            for watcher in watchers.filter(|it| it.selector.can_be_left() == can_be_left) {
                let effect = if can_be_left {
                    ChangeEffect::Unclear
                } else {
                    ChangeEffect::Deleted
                };
                let seen = watcher.sessions.iter().flat_map(|session| &session.seen);
                for seen in seen {
                    if let Item::Event {
                        kind: ChangeKind::Deleted,
                        object,
                    } = seen.item
                    {
                        self.effects
                            .entry(object.revision)
                            .or_insert((object.key, effect));
                    }
                }
            }
        }
    }
}

/// Returns every object that was shown as it was written, those that most witnesses have seen first.
fn agreed_objects(history: &History) -> Vec<ShownObject> {
    let mut witnesses: HashMap<ShownObject, usize> = HashMap::new();
    let events = history.watchers.iter().flat_map(|it| &it.sessions);
    let events = events.flat_map(|session| &session.seen);
    let shown = events.filter_map(|seen| match seen.item {
        Item::Event { kind, object } if kind != ChangeKind::Deleted => Some(object),
        Item::Event { .. } | Item::Bookmark { .. } => None,
    });
    let listed = history
        .reads
        .iter()
        .flat_map(|read| read.objects().copied());
    let got = history.gets.iter().filter_map(|get| get.found);
    for object in shown.chain(listed).chain(got) {
        let fits = history.write(object.write).is_some_and(|write| {
            write.key == object.key
                && write.group == object.group
                && write.verb != Verb::Delete
                && write.may_have_happened()
        });
        if fits {
            *witnesses.entry(object).or_default() += 1;
        }
    }
    let mut objects: Vec<_> = witnesses.into_iter().collect();
    objects.sort_unstable_by_key(|(object, witnesses)| (Reverse(*witnesses), object.revision));
    objects.into_iter().map(|(object, _)| object).collect()
}

/// Returns the changes with what was before each.
fn in_order(effects: &BTreeMap<u64, (ObjectKey, ChangeEffect)>) -> Vec<ObjectChange> {
    let mut states: HashMap<ObjectKey, ObjectState> = HashMap::new();
    let mut changes = Vec::with_capacity(effects.len());
    for (&revision, &(key, effect)) in effects {
        let state = states.entry(key).or_insert(ObjectState::Absent);
        let change = ObjectChange {
            revision,
            key,
            effect,
            previous: *state,
        };
        *state = change.after();
        changes.push(change);
    }
    changes
}

/// Finds for each deletion that was seen the write that did it.
fn resolve_deletions(history: &History, changes: &[ObjectChange], revisions: &mut [Option<u64>]) {
    let mut open: HashMap<ObjectKey, Vec<WriteId>> = HashMap::new();
    for (id, write) in history.named_writes() {
        if write.verb == Verb::Delete && write.may_have_happened() {
            open.entry(write.key).or_default().push(id);
        }
    }
    for change in changes
        .iter()
        .filter(|it| it.effect == ChangeEffect::Deleted)
    {
        let writes = open.entry(change.key).or_default();
        let known = |id: &WriteId| revisions[id.0 as usize];
        let fits = |id: &WriteId| {
            let base = history.write(*id).and_then(|write| write.base);
            known(id).is_none()
                && match change.previous {
                    ObjectState::Present(previous) => {
                        base.is_none_or(|base| base == previous.revision)
                    }
                    ObjectState::Absent | ObjectState::Unknown => true,
                }
        };
        let acknowledged = |id: &WriteId| {
            let write = history.write(*id);
            write.is_some_and(|write| write.acknowledged_at().is_some())
        };
        let mut fitting = writes.iter().copied().filter(fits).collect::<Vec<_>>();
        // Of several that fit, the one that says that it happened.
        fitting.sort_by_key(|id| !acknowledged(id));
        let is_told = writes.iter().any(|id| known(id) == Some(change.revision));
        if let (false, Some(id)) = (is_told, fitting.first()) {
            revisions[id.0 as usize] = Some(change.revision);
        }
    }
}

/// Returns the objects to which something may have happened that nobody saw.
fn doubtful(
    history: &History,
    changes: &[ObjectChange],
    revisions: &[Option<u64>],
) -> HashSet<ObjectKey> {
    let everything_was_seen = everything_was_seen(history, changes);
    let unresolved = history.named_writes().filter(|(id, write)| {
        let is_certain = write.acknowledged_at().is_some();
        revisions[id.0 as usize].is_none()
            && write.may_have_happened()
            && (is_certain || !everything_was_seen)
    });
    let unclear = changes
        .iter()
        .filter(|it| it.effect == ChangeEffect::Unclear);
    unresolved
        .map(|(_, write)| write.key)
        .chain(unclear.map(|change| change.key))
        .collect()
}

/// Returns true if somebody who watched everything was there for each of the changes.
fn everything_was_seen(history: &History, changes: &[ObjectChange]) -> bool {
    let last = history
        .final_state()
        .map(super::history::ListRead::revision);
    let watchers = history.watchers.iter();
    let spans = watchers
        .filter(|watcher| watcher.selector == Selector::Everything)
        .flat_map(|watcher| intervals(watcher, last))
        .map(|interval| (interval.after, interval.until))
        .collect();
    match changes {
        [] => true,
        [first, .., end] | [first @ end] => {
            let until = last.unwrap_or(end.revision).max(end.revision);
            covers(spans, first.revision - 1, until)
        }
    }
}
