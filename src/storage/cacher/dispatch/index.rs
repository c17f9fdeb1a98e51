//! An index of watchers by what they select, so that an event finds those that it may concern.
//!
//! ```text
//!  scope: a folder or a key
//!    |-- everyone else                      --> shards --> group
//!    |-- field name -->  exact value        --> shards --> group      group: [entry] [entry] [entry] ...
//!    +-- label name -->  exact value        --> shards --> group
//! ```
//!
//! Each watcher is filed once: under its scope, there under one exact term of its selectors if it has one, and there
//! under its shard ([`super::shard_groups`]). An event is looked up under its key and each folder above that, and there
//! under the values and the hashes that its object has and had. So it finds each watcher at most once, and none whose
//! term names another value or whose shard is another: the cost of an event grows with the watchers that it concerns,
//! not with all.
//!
//! The rest of a selector is evaluated for each watcher that was found. An event is sent to a watcher without a further
//! requirement without evaluating its filter, so that only its entry and its channel are touched.
//!
//! # Invariants
//!
//! - A watcher's place names its group and its index there. When an entry is removed, the last one of the group moves
//!   to its index and its place is updated, so adding and removing take constant time.
//! - Every group in the table has an entry: the group is removed with the last one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::task::Waker;

use smallvec::SmallVec;

use super::filter::{ExactTerm, Filter, TermKind, folders};
use super::shard_groups::{ShardGroups, Sides};
use super::signal_channel::Sender;
use crate::meta::{Attributes, ShardSelector};
use crate::ring::channel::PushOutcome;
use crate::storage::cacher::window::event::{CacheEvent, Current};

/// The most label names that are looked up for each event. If watchers use more, the labels of the object are looked up
/// instead.
const LABEL_NAMES_LOOKED_AT_MAX: usize = 16;

/// The number of wakers that a list of wakers holds without an allocation: 128 bytes.
const WAKERS_INLINE: usize = 8;

/// The wakers of the watchers that were asleep, to be woken outside the lock.
pub(crate) type WakeList = SmallVec<[Waker; WAKERS_INLINE]>;

/// The watchers of a type.
#[derive(Debug, Default)]
pub(crate) struct Index {
    scopes: HashMap<Box<str>, KeyScope>,
    /// The groups, by the number that scopes refer to; those in `vacant` are empty.
    groups: Vec<WatcherSet>,
    /// Numbers of groups to reuse.
    vacant: Vec<u32>,
    /// The place of each watcher, by its number.
    places: Vec<Option<IndexSlot>>,
}

/// The groups of one folder or key.
#[derive(Debug, Default)]
struct KeyScope {
    /// The groups of the watchers without an exact term.
    others: ShardGroups,
    fields: TermGroups,
    labels: TermGroups,
}

/// Groups by the name and the value of a term.
type TermGroups = BTreeMap<Box<str>, HashMap<Box<str>, ShardGroups>>;

/// The watchers with the same scope, term and shard, contiguous in memory.
#[derive(Debug, Default)]
struct WatcherSet {
    /// The scope of the watchers.
    scope: Box<str>,
    /// The exact term of the watchers; `None` if they have none.
    term: Option<ExactTerm>,
    /// The shard selector of the watchers, which may be empty.
    shard: ShardSelector,
    entries: Vec<WatcherEntry>,
}

/// The outcome of a dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DispatchResult {
    /// The number of watchers that had no room for the event.
    pub(crate) overflows: u64,
    /// The number of times that a shard selector would have refused the event, see [`ShardGroups::concerned`].
    pub(crate) refused_by_shards: u64,
}

/// A watcher, as the dispatcher knows it.
#[derive(Debug)]
struct WatcherEntry {
    sender: Sender,
    /// The filter, for watchers that select less than their group; `None` for the others.
    filter: Option<Arc<Filter>>,
    /// The watcher's number in the registration queue.
    number: u32,
}

/// The position of a watcher's entry.
#[derive(Clone, Copy, Debug)]
struct IndexSlot {
    group: u32,
    position: u32,
}

impl Index {
    /// Inserts a watcher under a number that no other watcher has.
    pub(crate) fn insert(&mut self, number: u32, filter: Arc<Filter>, sender: Sender) {
        let term = filter.exact_term();
        let shard = filter.shard();
        let decided = match &term {
            None => filter.is_shard_of_scope(),
            // An object that moves may have the value on one side of an event and lie in the shard on the other.
            Some(term) => term.is_all && shard.is_empty(),
        };
        let group = self.group(filter.scope(), term.as_ref(), &shard);
        if !shard.is_empty()
            && let Some(groups) = self.shard_groups(filter.scope(), term.as_ref())
        {
            groups.watcher_added();
        }
        let entries = &mut self.groups[group as usize].entries;
        let position = index_u32(entries.len());
        entries.push(WatcherEntry {
            sender,
            filter: (!decided).then_some(filter),
            number,
        });
        let at = number as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, None);
        }
        self.places[at] = Some(IndexSlot { group, position });
    }

    /// Removes a watcher, if it is there.
    pub(crate) fn remove(&mut self, number: u32) {
        let Some(place) = self.places.get_mut(number as usize).and_then(Option::take) else {
            return;
        };
        self.count_removed(place.group);
        let group = &mut self.groups[place.group as usize];
        group.entries.swap_remove(place.position as usize);
        if let Some(moved) = group.entries.get(place.position as usize) {
            self.places[moved.number as usize] = Some(place);
        } else if group.entries.is_empty() {
            self.remove_group(place.group);
        }
    }

    /// Sends an event to every watcher that it concerns. The caller wakes the watchers whose wakers are added to
    /// `wake`.
    pub(crate) fn dispatch(
        &mut self,
        sequence: u64,
        event: &CacheEvent,
        wake: &mut WakeList,
    ) -> DispatchResult {
        let mut dispatched = DispatchResult::default();
        let current = match &event.current {
            Current::Unreadable => return dispatched,
            Current::Deleted => None,
            Current::Object(object) => Some(object.attributes()),
        };
        let sides = Sides {
            current,
            previous: event.previous.as_ref().map(|it| it.attributes()),
        };
        // An object that could never be decoded and is deleted has been sent to nobody.
        if sides.current.is_none() && sides.previous.is_none() {
            return dispatched;
        }
        let Self { scopes, groups, .. } = self;
        for name in folders(&event.key).chain(std::iter::once(&*event.key)) {
            if let Some(scope) = scopes.get(name) {
                let refused = scope.concerned(sides, &mut |group| {
                    let group = &mut groups[group as usize];
                    dispatched.overflows += group.dispatch(sequence, event, wake);
                    group.entries.len()
                });
                dispatched.refused_by_shards += refused;
            }
        }
        dispatched
    }

    /// Sends a watcher a bookmark of a revision up to which every event was sent to it.
    pub(crate) fn bookmark(&mut self, number: u32, revision: u64, wake: &mut WakeList) {
        let place = self.places.get(number as usize).copied().flatten();
        if let Some(place) = place {
            let group = &mut self.groups[place.group as usize];
            let sender = &mut group.entries[place.position as usize].sender;
            let outcome = sender.bookmark(revision);
            note(sender, outcome, wake);
        }
    }

    /// Ends the watches of all, each with the bookmark that `last` returns for it, and removes them.
    pub(crate) fn end_all(&mut self, last: impl Fn(u32) -> Option<u64>, wake: &mut WakeList) {
        let ended = std::mem::take(self);
        for mut entry in ended.groups.into_iter().flat_map(|it| it.entries) {
            let outcome = entry.sender.end(last(entry.number));
            note(&mut entry.sender, outcome, wake);
        }
    }

    /// Returns how many watchers there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.groups.iter().map(|it| it.entries.len()).sum()
    }

    /// Returns true if no watcher and no group is left, but numbers to reuse.
    #[cfg(test)]
    pub(crate) fn is_clear(&self) -> bool {
        let vacant = self.vacant.len() == self.groups.len();
        vacant && self.scopes.is_empty() && self.places.iter().all(Option::is_none)
    }

    /// Returns the group of a scope, a term and a shard, which is created if there is none.
    fn group(&mut self, scope: &str, term: Option<&ExactTerm>, shard: &ShardSelector) -> u32 {
        let vacant = self.vacant.last().copied();
        let next = vacant.unwrap_or_else(|| index_u32(self.groups.len()));
        let at = self.scopes.entry(scope.into()).or_default();
        let groups = match term {
            None => &mut at.others,
            Some(term) => {
                let values = at.terms(term.kind).entry(term.name.clone()).or_default();
                values.entry(term.value.clone()).or_default()
            }
        };
        let group = groups.group(shard, next);
        if group == next {
            let made = WatcherSet {
                scope: scope.into(),
                term: term.cloned(),
                shard: shard.clone(),
                entries: Vec::new(),
            };
            if self.vacant.pop().is_some() {
                self.groups[group as usize] = made;
            } else {
                self.groups.push(made);
            }
        }
        group
    }

    /// Returns the groups of a scope and a term.
    fn shard_groups(&mut self, scope: &str, term: Option<&ExactTerm>) -> Option<&mut ShardGroups> {
        self.scopes.get_mut(scope)?.shard_groups(term)
    }

    /// Counts that a watcher leaves a group, if those of the group have a shard selector.
    fn count_removed(&mut self, number: u32) {
        let Self { scopes, groups, .. } = self;
        let group = &groups[number as usize];
        if group.shard.is_empty() {
            return;
        }
        let scope = scopes.get_mut(&group.scope);
        if let Some(groups) = scope.and_then(|it| it.shard_groups(group.term.as_ref())) {
            groups.watcher_removed();
        }
    }

    fn remove_group(&mut self, number: u32) {
        let group = std::mem::take(&mut self.groups[number as usize]);
        self.vacant.push(number);
        let Some(scope) = self.scopes.get_mut(&group.scope) else {
            return;
        };
        if let Some(groups) = scope.shard_groups(group.term.as_ref()) {
            groups.remove(&group.shard);
        }
        if let Some(term) = &group.term {
            let terms = scope.terms(term.kind);
            if let Some(values) = terms.get_mut(&term.name) {
                if values.get(&term.value).is_some_and(ShardGroups::is_empty) {
                    values.remove(&term.value);
                }
                if values.is_empty() {
                    terms.remove(&term.name);
                }
            }
        }
        if scope.others.is_empty() && scope.fields.is_empty() && scope.labels.is_empty() {
            self.scopes.remove(&group.scope);
        }
    }
}

impl KeyScope {
    fn terms(&mut self, kind: TermKind) -> &mut TermGroups {
        match kind {
            TermKind::Field => &mut self.fields,
            TermKind::Label => &mut self.labels,
        }
    }

    /// Returns the groups of a term, or of the watchers that have none.
    fn shard_groups(&mut self, term: Option<&ExactTerm>) -> Option<&mut ShardGroups> {
        match term {
            None => Some(&mut self.others),
            Some(term) => {
                let values = self.terms(term.kind).get_mut(&term.name)?;
                values.get_mut(&term.value)
            }
        }
    }

    /// Does for all groups of the scope as [`ShardGroups::concerned`] says.
    fn concerned(&self, sides: Sides<'_>, push: &mut impl FnMut(u32) -> usize) -> u64 {
        let mut refused = self.others.concerned(sides, push);
        let mut look = |groups: &ShardGroups| refused += groups.concerned(sides, push);
        for (name, values) in &self.fields {
            let current = sides.current.map(|it| field(it, name));
            let previous = sides.previous.map(|it| field(it, name));
            either(values, current, previous, &mut look);
        }
        if self.labels.len() <= LABEL_NAMES_LOOKED_AT_MAX {
            for (name, values) in &self.labels {
                let current = sides.current.and_then(|it| it.labels().get(name));
                let previous = sides.previous.and_then(|it| it.labels().get(name));
                either(values, current, previous, &mut look);
            }
        } else {
            self.look_at_own_labels(sides, look);
        }
        refused
    }

    /// Looks at groups by the object's own labels, when watchers use too many label names to try each.
    fn look_at_own_labels(&self, sides: Sides<'_>, mut look: impl FnMut(&ShardGroups)) {
        let current = sides.current.into_iter().flat_map(|it| it.labels().iter());
        for (name, value) in current {
            if let Some(values) = self.labels.get(name) {
                either(values, Some(value), None, &mut look);
            }
        }
        let previous = sides.previous.into_iter().flat_map(|it| it.labels().iter());
        for (name, value) in previous {
            let current = sides.current.and_then(|it| it.labels().get(name));
            if let Some(values) = self.labels.get(name).filter(|_| current != Some(value)) {
                either(values, None, Some(value), &mut look);
            }
        }
    }
}

/// Returns the value of a field; empty if the object lacks it.
fn field<'a>(attributes: Attributes<'a>, name: &str) -> &'a str {
    attributes.field(name).unwrap_or_default()
}

/// Calls `look` for the groups of the values that an object has and had; once if the values are equal.
fn either(
    groups: &HashMap<Box<str>, ShardGroups>,
    current: Option<&str>,
    previous: Option<&str>,
    look: &mut impl FnMut(&ShardGroups),
) {
    let left = previous.filter(|_| previous != current);
    for value in current.into_iter().chain(left) {
        groups.get(value).into_iter().for_each(&mut *look);
    }
}

impl WatcherSet {
    fn dispatch(&mut self, sequence: u64, event: &CacheEvent, wake: &mut WakeList) -> u64 {
        let mut overflows = 0;
        for entry in &mut self.entries {
            if entry.filter.as_ref().is_none_or(|it| it.concerns(event)) {
                let outcome = entry.sender.push(sequence);
                overflows += u64::from(outcome == PushOutcome::Full);
                note(&mut entry.sender, outcome, wake);
            }
        }
        overflows
    }
}

/// Collects the waker of a watcher that is asleep.
fn note(sender: &mut Sender, outcome: PushOutcome, wake: &mut WakeList) {
    match outcome {
        PushOutcome::QueuedNeedsWake => wake.extend(sender.waker()),
        PushOutcome::Queued | PushOutcome::Full => {}
    }
}

/// Converts an index: there are fewer than 2^32 watchers, since so many do not fit into memory.
fn index_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
