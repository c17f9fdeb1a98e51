//! Rule: every object that is shown was written: by that write, under that name, in that group, at that revision.

use std::collections::HashSet;

use super::{Facts, get_name, read_name};
use crate::verify::history::{At, ChangeKind, Item, Nanos, ObjectKey, ShownObject, Verb, WriteId};
use crate::verify::timeline::ChangeEffect;
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (place, read) in facts.history.reads.iter().enumerate() {
        for page in &read.pages {
            for object in &page.objects {
                let wrong = wrong(facts, object, page.answered);
                found.extend(wrong.map(|message| {
                    violation(facts, &read_name(place), message, object.write).shown_by(read)
                }));
            }
        }
    }
    for (place, get) in facts.history.gets.iter().enumerate() {
        let wrong = get.found.and_then(|object| {
            let message = wrong(facts, &object, get.answered)?;
            Some(violation(facts, &get_name(place), message, object.write).shown_by(get))
        });
        found.extend(wrong);
    }
    for watcher in &facts.history.watchers {
        let who = format!("watcher {}", watcher.name);
        for seen in watcher.sessions.iter().flat_map(|session| &session.seen) {
            let Item::Event { kind, object } = &seen.item else {
                continue;
            };
            let wrong = if *kind == ChangeKind::Deleted {
                wrong_deletion(facts, object)
            } else {
                wrong(facts, object, seen.at)
            };
            found.extend(
                wrong.map(|message| violation(facts, &who, message, object.write).shown_by(seen)),
            );
        }
    }
    found.extend(unwanted_deletions(facts));
    found
}

fn violation(facts: &Facts<'_>, who: &str, message: String, write: WriteId) -> Violation {
    let shown = facts.history.write(write);
    Violation::new(Promise::NeverWritten, who, message)
        .shown_by_all(shown.map(|shown| format!("{write}: {shown}")))
}

/// Returns the fault of an object as it was shown.
fn wrong(facts: &Facts<'_>, object: &ShownObject, at: Nanos) -> Option<String> {
    if let Some(message) = wrong_content(facts, object) {
        return Some(message);
    }
    let write = facts.history.write(object.write)?;
    if at < write.invoked {
        let began = At(write.invoked);
        return Some(format!(
            "{object} was shown before its write began, {began}"
        ));
    }
    let revision = facts.timeline.revision_of(object.write);
    revision
        .filter(|revision| *revision != object.revision)
        .map(|revision| format!("{object} was shown, but its write happened at {revision}"))
}

/// Returns the fault of the last object that a deletion shows. Its revision is the deletion's.
fn wrong_deletion(facts: &Facts<'_>, object: &ShownObject) -> Option<String> {
    wrong_content(facts, object).or_else(|| {
        let revision = facts.timeline.revision_of(object.write)?;
        (revision >= object.revision)
            .then(|| format!("{object} was deleted, but its write happened at {revision}"))
    })
}

fn wrong_content(facts: &Facts<'_>, object: &ShownObject) -> Option<String> {
    let Some(write) = facts.history.write(object.write) else {
        return Some(format!("{object} was never written"));
    };
    if !write.may_have_happened() {
        return Some(format!("{object} is what a refused write wanted"));
    }
    let is_put = matches!(write.verb, Verb::Create | Verb::Update);
    let fits = is_put && write.key == object.key && write.group == object.group;
    (!fits).then(|| format!("{object} is not what was written"))
}

/// Finds deletions that no write asked for.
fn unwanted_deletions(facts: &Facts<'_>) -> Vec<Violation> {
    let named = facts.history.named_writes();
    let wanted: HashSet<(ObjectKey, u64)> = named
        .filter(|(_, write)| write.verb == Verb::Delete)
        .filter_map(|(id, write)| Some((write.key, facts.timeline.revision_of(id)?)))
        .collect();
    let deleted = facts.timeline.changes().iter();
    deleted
        .filter(|change| change.effect == ChangeEffect::Deleted)
        .filter(|change| !wanted.contains(&(change.key, change.revision)))
        .map(|change| {
            let message = format!("nobody deleted {} at {}", change.key, change.revision);
            Violation::new(Promise::NeverWritten, change.key.to_string(), message)
                .shown_by_all(witness(facts, change.revision))
        })
        .collect()
}

/// Returns the watcher that saw a deletion.
fn witness(facts: &Facts<'_>, revision: u64) -> Option<String> {
    facts.history.watchers.iter().find_map(|watcher| {
        let mut seen = watcher.sessions.iter().flat_map(|session| &session.seen);
        let is_it = |item: &Item| {
            matches!(item, Item::Event { kind: ChangeKind::Deleted, object } if object.revision == revision)
        };
        let seen = seen.find(|seen| is_it(&seen.item))?;
        Some(format!("watcher {}: {seen}", watcher.name))
    })
}
