//! Rule: a deletion that was acknowledged came to whoever watched all the while.
//!
//! Its answer names no revision, so a deletion that came to nobody has no place among the changes. But what
//! was acknowledged before it began lies before it, and what began after its answer lies behind it.

use std::ops::RangeInclusive;

use super::Facts;
use crate::verify::history::{ChangeKind, Item, ObjectKey, Verb, Watcher, Write, WriteId};
use crate::verify::timeline::ObjectState;
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (id, write) in facts.history.named_writes() {
        let Some(at) = write.acknowledged_at() else {
            continue;
        };
        if write.verb != Verb::Delete || facts.timeline.revision_of(id).is_some() {
            continue;
        }
        let after = latest_before(facts, write);
        let Some(until) = earliest_after(facts, at).or_else(|| facts.last()) else {
            continue;
        };
        for (watcher, interval) in facts.intervals() {
            let was_there = interval.after <= after && interval.until >= until;
            let selects = watcher.selector.selects(write.key, write.group);
            if was_there && selects && !saw_it_go(facts, watcher, write.key, after..=until) {
                found.push(never_came(&watcher.name, id, write, after, until));
            }
        }
    }
    found
}

/// Returns true if an object left a watcher's selection in some way that no write is known for. A watcher that
/// selects by label cannot tell whether it was deleted.
fn saw_it_go(
    facts: &Facts<'_>,
    watcher: &Watcher,
    key: ObjectKey,
    revisions: RangeInclusive<u64>,
) -> bool {
    let mut seen = watcher.sessions.iter().flat_map(|session| &session.seen);
    seen.any(|seen| {
        let Item::Event { kind, object } = &seen.item else {
            return false;
        };
        let is_explained = facts.timeline.write_at(object.revision).is_some();
        let left = *kind == ChangeKind::Deleted && object.key == key;
        left && revisions.contains(&object.revision) && !is_explained
    })
}

fn never_came(watcher: &str, id: WriteId, write: &Write, after: u64, until: u64) -> Violation {
    let message = format!(
        "the deletion of {}, between {after} and {until}, never came",
        write.key
    );
    Violation::new(Promise::NoGap, format!("watcher {watcher}"), message)
        .shown_by(format_args!("{id}: {write}"))
}

/// Returns the newest revision that surely lies before the write.
fn latest_before(facts: &Facts<'_>, write: &Write) -> u64 {
    let writes = facts.history.named_writes();
    let acknowledged =
        writes.filter(|(_, other)| other.acknowledged_at().is_some_and(|at| at < write.invoked));
    let revisions = acknowledged.filter_map(|(id, _)| facts.timeline.revision_of(id));
    let base = write.base.filter(|base| is_of_object(facts, *base, write));
    revisions.chain(base).max().unwrap_or(0)
}

/// Returns the oldest revision that surely lies behind something that was answered at this time.
fn earliest_after(facts: &Facts<'_>, at: u64) -> Option<u64> {
    let writes = facts.history.named_writes();
    let later = writes.filter(|(_, other)| other.invoked > at);
    later
        .filter_map(|(id, _)| facts.timeline.revision_of(id))
        .min()
}

fn is_of_object(facts: &Facts<'_>, revision: u64, write: &Write) -> bool {
    let change = facts.timeline.at(revision);
    let state = change.map(crate::verify::timeline::ObjectChange::after);
    matches!(state, Some(ObjectState::Present(it)) if it.key == write.key)
}
