//! The initial events of a watch are, at their end, the state of the revision that the end names.

use std::collections::BTreeMap;

use super::snapshot::{Difference, State, states};
use super::{Facts, read_revision};
use crate::load::verify::history::{Key, Kind, Session, Start, Version, Watcher, What};
use crate::load::verify::violation::{Rule, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let known = read_revision::Known::of(facts);
    let mut found = Vec::new();
    let mut ends: Vec<(&Watcher, &Session, u64)> = Vec::new();
    for watcher in &facts.history.watchers {
        for session in &watcher.sessions {
            if let Some(revision) = session.initial_revision() {
                ends.push((watcher, session, revision));
                found.extend(older_than_known(&known, watcher, session, revision));
            }
        }
    }
    ends.sort_by_key(|(.., revision)| *revision);
    let revisions: Vec<u64> = ends.iter().map(|(.., revision)| *revision).collect();
    let mut ends = ends.into_iter();
    states(facts, &revisions, |state| {
        let Some((watcher, session, revision)) = ends.next() else {
            return;
        };
        found.extend(incomplete(facts, watcher, session, revision, state));
    });
    found
}

/// The newest state was asked for, and more was known by then.
fn older_than_known(
    known: &read_revision::Known,
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
    state: &State,
) -> Option<Violation> {
    let (initial, rest) = session.split_initial();
    let mut shown: BTreeMap<Key, Version> = BTreeMap::new();
    for seen in initial {
        let What::Event { kind, object } = &seen.what else {
            continue;
        };
        let before = match kind {
            Kind::Added | Kind::Modified => shown.insert(object.key, *object),
            Kind::Deleted => shown.remove(&object.key),
        };
        if before.is_some_and(|before| before.revision >= object.revision) {
            let message = format!("{} goes back to {}", object.key, object.revision);
            return Some(named(watcher, message).shown_by(seen));
        }
    }
    let objects: Vec<Version> = shown.into_values().collect();
    let difference = Difference::of(facts, state, &watcher.selector, objects.iter())?;
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
        Rule::InitialEvents,
        format!("watcher {}", watcher.name),
        message,
    )
}
