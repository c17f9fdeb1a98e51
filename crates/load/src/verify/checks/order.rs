//! Rule: the events of a watch rise. No event comes twice, before its time, or after a bookmark that covers it.

use std::collections::HashSet;

use super::{Facts, write_of};
use crate::verify::coverage::Interval;
use crate::verify::history::{
    ChangeKind, Item, ObjectKey, SeenItem, Session, ShownObject, Start, Watcher,
};
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (watcher, interval) in facts.intervals() {
        follow(facts, watcher, &interval, &mut found);
    }
    found
}

fn follow(facts: &Facts<'_>, watcher: &Watcher, interval: &Interval, found: &mut Vec<Violation>) {
    let mut position = RunPosition::default();
    for session in &watcher.sessions[interval.sessions.clone()] {
        position.begin(session, interval);
        let (_, seen) = session.split_initial();
        for seen in seen {
            let Some((rule, message, before)) = position.see(seen) else {
                continue;
            };
            let violation = Violation::new(rule, format!("watcher {}", watcher.name), message)
                .shown_by_all(write_of(facts, seen.item.revision()))
                .shown_by(format_args!("the watch began {}", session.start))
                .shown_by_all(before)
                .shown_by(seen);
            found.push(violation);
        }
    }
}

/// The progress of an unbroken run of watches.
#[derive(Default)]
struct RunPosition {
    /// The events that came, by object and version.
    seen: HashSet<(ObjectKey, u64)>,
    /// The position at which the present watch began, and whether it was a resume.
    begun_after: u64,
    resumed: bool,
    /// The newest event and the newest bookmark, and the revisions of both.
    event: Option<SeenItem>,
    bookmark: Option<SeenItem>,
}

impl RunPosition {
    fn begin(&mut self, session: &Session, interval: &Interval) {
        self.resumed = false;
        match &session.start {
            Start::List { revision, objects } => {
                self.begun_after = *revision;
                self.seen.extend(objects.iter().map(identity));
            }
            Start::InitialEvents { .. } => {
                self.begun_after = interval.after;
                let (initial, _) = session.split_initial();
                for seen in initial {
                    if let Item::Event { object, .. } = &seen.item {
                        self.seen.insert(identity(object));
                    }
                }
            }
            Start::Resume { after } => {
                self.begun_after = *after;
                self.resumed = true;
            }
        }
    }

    /// Goes on to what came next; the rule that it breaks, and what had come before.
    fn see(&mut self, seen: &SeenItem) -> Option<(Promise, String, Option<SeenItem>)> {
        let revision = seen.item.revision();
        let event = self.event.map_or(0, |it| it.item.revision());
        let bookmark = self.bookmark.map_or(0, |it| it.item.revision());
        match &seen.item {
            Item::Bookmark { .. } => {
                let before = self.bookmark.filter(|_| bookmark > event).or(self.event);
                self.bookmark = Some(*seen)
                    .filter(|_| revision >= bookmark)
                    .or(self.bookmark);
                (revision < event.max(bookmark)).then(|| {
                    let message = format!("a bookmark goes back to {revision}");
                    (Promise::Ordered, message, before)
                })
            }
            Item::Event { kind, object } => {
                let broken = self.broken_by(*kind, object, event, bookmark);
                self.seen.insert(identity(object));
                if revision > event {
                    self.event = Some(*seen);
                }
                broken
            }
        }
    }

    fn broken_by(
        &self,
        kind: ChangeKind,
        object: &ShownObject,
        event: u64,
        bookmark: u64,
    ) -> Option<(Promise, String, Option<SeenItem>)> {
        let revision = object.revision;
        let what = format!("{kind} {} at {revision}", object.key);
        if self.seen.contains(&identity(object)) {
            let message = format!("{what} comes again");
            return Some((Promise::NoDuplicate, message, self.event));
        }
        if revision <= self.begun_after {
            let rule = if self.resumed {
                Promise::Resume
            } else {
                Promise::Ordered
            };
            let message = format!("{what} comes over a watch after {}", self.begun_after);
            return Some((rule, message, None));
        }
        if revision <= bookmark {
            let message = format!("{what} comes after a bookmark of {bookmark}");
            return Some((Promise::BookmarkEarly, message, self.bookmark));
        }
        let message = format!("{what} comes after an event of {event}");
        (revision <= event).then_some((Promise::Ordered, message, self.event))
    }
}

/// Returns the identity of an event. One revision is one change of one object.
fn identity(object: &ShownObject) -> (ObjectKey, u64) {
    (object.key, object.revision)
}
