//! Rule: in the end every watcher has what the list shows.

use std::collections::BTreeMap;

use super::Facts;
use crate::verify::history::{ChangeKind, Item, ListRead, ObjectKey, Start, WatchEnd, Watcher};
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let Some(last) = facts.history.final_state() else {
        return Vec::new();
    };
    let settled = |watcher: &&Watcher| {
        let end = watcher.sessions.last().map(|session| &session.end);
        end == Some(&WatchEnd::Settled)
    };
    let watchers = facts.history.watchers.iter().filter(settled);
    watchers
        .filter_map(|watcher| {
            let message = difference(watcher, last)?;
            let who = format!("watcher {}", watcher.name);
            let violation = Violation::new(Promise::FinalState, who, message);
            let tail = watcher.sessions.last().and_then(|it| it.seen.last());
            Some(violation.shown_by(last).shown_by_all(tail))
        })
        .collect()
}

/// Returns in what a watcher's state differs from what a list of everything shows.
pub(crate) fn difference(watcher: &Watcher, list: &ListRead) -> Option<String> {
    let right: BTreeMap<ObjectKey, u64> = list
        .objects()
        .filter(|it| watcher.selector.selects(it.key, it.group))
        .map(|it| (it.key, it.revision))
        .collect();
    let got = state(watcher, list.revision());
    let wrong = |key: &&ObjectKey| right.get(key) != got.get(key);
    let key = right.keys().chain(got.keys()).find(wrong)?;
    let name = |revision: Option<&u64>| {
        revision.map_or_else(|| "absent".to_owned(), |it| format!("at {it}"))
    };
    Some(format!(
        "{key} is {} for the watcher and {} in the list",
        name(got.get(key)),
        name(right.get(key))
    ))
}

/// Returns the state that a watcher has made of what it was told up to a revision. A write that nobody waited for any
/// longer may still have happened after it.
fn state(watcher: &Watcher, until: u64) -> BTreeMap<ObjectKey, u64> {
    let mut state = BTreeMap::new();
    for session in &watcher.sessions {
        match &session.start {
            Start::List { objects, .. } => {
                state = objects.iter().map(|it| (it.key, it.revision)).collect();
            }
            Start::InitialEvents { .. } => state.clear(),
            Start::Resume { .. } => {}
        }
        for seen in &session.seen {
            match &seen.item {
                Item::Event {
                    kind: ChangeKind::Deleted,
                    object,
                } if object.revision <= until => {
                    state.remove(&object.key);
                }
                Item::Event { object, .. } if object.revision <= until => {
                    state.insert(object.key, object.revision);
                }
                Item::Event { .. } | Item::Bookmark { .. } => {}
            }
        }
    }
    state
}
