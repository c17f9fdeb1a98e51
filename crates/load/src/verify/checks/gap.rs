//! Rule: between the start of a watch and its position nothing that it selects is left out.

use std::collections::HashSet;

use super::{Facts, write_of};
use crate::verify::coverage::Interval;
use crate::verify::expectation::Expectation;
use crate::verify::history::{Item, ObjectKey, SeenItem, Session, Start, Watcher};
use crate::verify::timeline::ObjectChange;
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (watcher, interval) in facts.intervals() {
        let sessions = &watcher.sessions[interval.sessions.clone()];
        let seen = sessions.iter().flat_map(|session| &session.seen);
        // An event of another object is none of this change, whatever its revision.
        let came: HashSet<(ObjectKey, u64)> = seen
            .filter_map(|seen| match seen.item {
                Item::Event { object, .. } => Some((object.key, object.revision)),
                Item::Bookmark { .. } => None,
            })
            .collect();
        for change in facts.timeline.between(interval.after, interval.until) {
            let expectation = Expectation::new(change, &watcher.selector);
            if expectation.is_demanded() && !came.contains(&(change.key, change.revision)) {
                found.push(missing(facts, watcher, &interval, change));
            }
        }
    }
    found
}

/// Returns the violation of a change that did not come, with how the watch went past it.
fn missing(
    facts: &Facts<'_>,
    watcher: &Watcher,
    interval: &Interval,
    change: &ObjectChange,
) -> Violation {
    let sessions = &watcher.sessions[interval.sessions.clone()];
    let crossing = sessions
        .iter()
        .find_map(|session| Crossing::find(session, change.revision));
    let (rule, how) = match &crossing {
        Some(Crossing {
            after_resume: true, ..
        }) => (Promise::Resume, "right after the watch was resumed"),
        Some(Crossing {
            by_bookmark_alone: true,
            ..
        }) => (Promise::BookmarkEarly, "though a bookmark covers it"),
        Some(_) => (Promise::NoGap, "though a later event did"),
        None => (Promise::NoGap, "though there was time for it until the end"),
    };
    let message = format!(
        "the change of {} at {} never came, {how}",
        change.key, change.revision
    );
    let mut violation = Violation::new(rule, format!("watcher {}", watcher.name), message)
        .shown_by_all(write_of(facts, change.revision));
    if let Some(Crossing {
        session,
        before,
        by,
        ..
    }) = crossing
    {
        violation = violation
            .shown_by(format_args!("the watch began {}", session.start))
            .shown_by_all(before)
            .shown_by(by);
    }
    violation
}

/// The items of a watch between which it went past a revision.
struct Crossing<'a> {
    session: &'a Session,
    /// The last item that came before.
    before: Option<&'a SeenItem>,
    /// The first item from beyond the revision.
    by: &'a SeenItem,
    /// Nothing had come since the watch was resumed.
    after_resume: bool,
    /// No event from beyond came over this watch.
    by_bookmark_alone: bool,
}

impl<'a> Crossing<'a> {
    fn find(session: &'a Session, revision: u64) -> Option<Self> {
        let (_, seen) = session.split_initial();
        let place = seen.iter().position(|it| it.item.revision() > revision);
        let place = place.or_else(|| seen.iter().position(|it| it.item.revision() == revision))?;
        let is_event = |seen: &SeenItem| matches!(seen.item, Item::Event { .. });
        let before = place.checked_sub(1).map(|before| &seen[before]);
        Some(Self {
            session,
            before,
            by: &seen[place],
            after_resume: before.is_none()
                && matches!(session.start, Start::Resume { .. })
                && is_event(&seen[place]),
            by_bookmark_alone: !seen[place..].iter().any(is_event),
        })
    }
}
