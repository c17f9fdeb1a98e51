//! Rule: the initial events of a watch are, at their end, the state of the revision that the end names.

use std::collections::BTreeMap;

use super::snapshot::{Difference, ObjectsAt, states};
use super::{Facts, read_revision};
use crate::verify::history::{
    ChangeKind, Item, ObjectKey, SeenItem, Session, ShownObject, Start, Watcher,
};
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let known = read_revision::KnownRevisions::new(facts);
    let mut found = Vec::new();
    each_end(facts, |end, state| {
        let watcher = &facts.history.watchers[end.watcher];
        let (session, revision) = (end.session, end.revision);
        found.extend(older_than_known(&known, watcher, session, revision));
        found.extend(incomplete(facts, watcher, session, revision, state));
    });
    found
}

/// A watch whose initial events are complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct InitialEnd<'a> {
    /// The watcher's place.
    pub(super) watcher: usize,
    pub(super) session: &'a Session,
    /// The revision that the end names.
    pub(super) revision: u64,
}

/// Hands over every watch with complete initial events, and the state of which they had to be.
pub(super) fn each_end<'a>(facts: &Facts<'a>, mut take: impl FnMut(InitialEnd<'a>, &ObjectsAt)) {
    let mut ends: Vec<InitialEnd<'a>> = Vec::new();
    for (watcher, it) in facts.history.watchers.iter().enumerate() {
        ends.extend(it.sessions.iter().filter_map(|session| {
            let revision = session.initial_revision()?;
            Some(InitialEnd {
                watcher,
                session,
                revision,
            })
        }));
    }
    ends.sort_by_key(|end| end.revision);
    let revisions: Vec<u64> = ends.iter().map(|end| end.revision).collect();
    let mut ends = ends.into_iter();
    states(facts, &revisions, |state| {
        if let Some(end) = ends.next() {
            take(end, state);
        }
    });
}

/// Returns the objects that initial events show at their end, and the first event with which one goes back.
pub(super) fn shown(
    initial: &[SeenItem],
) -> (
    BTreeMap<ObjectKey, ShownObject>,
    Option<(ShownObject, &SeenItem)>,
) {
    let mut shown: BTreeMap<ObjectKey, ShownObject> = BTreeMap::new();
    let mut goes_back = None;
    for seen in initial {
        let Item::Event { kind, object } = seen.item else {
            continue;
        };
        let before = match kind {
            ChangeKind::Added | ChangeKind::Modified => shown.insert(object.key, object),
            ChangeKind::Deleted => shown.remove(&object.key),
        };
        if before.is_some_and(|before| before.revision >= object.revision) {
            goes_back = goes_back.or(Some((object, seen)));
        }
    }
    (shown, goes_back)
}

/// Returns the violation of initial events that had to be the newest state, and were older than what was known.
fn older_than_known(
    known: &read_revision::KnownRevisions,
    watcher: &Watcher,
    session: &Session,
    revision: u64,
) -> Option<Violation> {
    if !matches!(session.start, Start::InitialEvents { any: false }) {
        return None;
    }
    let (least, source) = known.before(session.opened)?;
    (revision < least).then(|| {
        let message = format!("the newest state was of {revision}, and {least} was known");
        named(watcher, message).shown_by(source)
    })
}

fn incomplete(
    facts: &Facts<'_>,
    watcher: &Watcher,
    session: &Session,
    revision: u64,
    state: &ObjectsAt,
) -> Option<Violation> {
    let (initial, rest) = session.split_initial();
    let (shown, goes_back) = shown(initial);
    if let Some((object, seen)) = goes_back {
        let message = format!("{} goes back to {}", object.key, object.revision);
        return Some(named(watcher, message).shown_by(seen));
    }
    let objects: Vec<ShownObject> = shown.into_values().collect();
    let difference = Difference::find(facts, state, &watcher.selector, objects.iter())?;
    let message = format!("the initial events end at {revision}, and {difference}");
    Some(
        named(watcher, message)
            .shown_by_all(difference.write(facts))
            .shown_by(format_args!("the watch began {}", session.start))
            .shown_by_all(difference.seen(initial))
            .shown_by_all(rest.first()),
    )
}

fn named(watcher: &Watcher, message: String) -> Violation {
    Violation::new(
        Promise::InitialEvents,
        format!("watcher {}", watcher.name),
        message,
    )
}
