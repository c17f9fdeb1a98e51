//! The revisions that a watcher answers for: all between the start of an unbroken run of watches and the
//! position that it came to.

use std::ops::Range;

use super::history::{Start, WatchEnd, Watcher};

/// An unbroken run of watches, each of which went on where the one before had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// Everything after this revision had to come,
    pub(crate) after: u64,
    /// up to this one.
    pub(crate) until: u64,
    /// The watches, by their places among the watcher's sessions.
    pub(crate) sessions: Range<usize>,
}

/// Returns a watcher's intervals. `last` is the revision of the final state, up to which everybody had the time to
/// come.
pub(crate) fn intervals(watcher: &Watcher, last: Option<u64>) -> Vec<Interval> {
    let mut found: Vec<Interval> = Vec::new();
    let mut open = false;
    for (place, session) in watcher.sessions.iter().enumerate() {
        let begins = match &session.start {
            Start::List { revision, .. } => Some(*revision),
            Start::InitialEvents { .. } => {
                let revision = session.initial_revision();
                open = revision.is_some();
                if !open {
                    continue;
                }
                revision
            }
            Start::Resume { after } => (!open).then_some(*after),
        };
        if let Some(after) = begins {
            found.push(Interval {
                after,
                until: after,
                sessions: place..place,
            });
            open = true;
        }
        let Some(interval) = found.last_mut() else {
            continue;
        };
        if let Start::Resume { after } = session.start {
            interval.until = interval.until.max(after);
        }
        let (_, seen) = session.split_initial();
        let reached = seen.iter().map(|seen| seen.item.revision());
        interval.until = reached.fold(interval.until, u64::max);
        interval.sessions.end = place + 1;
        if session.end == WatchEnd::Settled {
            interval.until = interval.until.max(last.unwrap_or(0));
        }
    }
    found
}

/// Returns true if these intervals together leave nothing out between two revisions.
pub(crate) fn covers(mut intervals: Vec<(u64, u64)>, after: u64, until: u64) -> bool {
    intervals.sort_unstable();
    let mut reached = after;
    for (from, to) in intervals {
        if from <= reached {
            reached = reached.max(to);
        }
    }
    reached >= until
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::history::{
        ChangeKind, LabelValue, ObjectKey, SeenItem, Selector, Session, ShownObject,
    };
    use crate::verify::history::{Item, WriteId};

    fn session(start: Start, seen: &[Item], end: WatchEnd) -> Session {
        let seen = seen.iter().map(|&item| SeenItem { at: 0, item });
        Session {
            opened: 0,
            start,
            seen: seen.collect(),
            end,
        }
    }

    fn event(revision: u64) -> Item {
        let object = ShownObject {
            key: ObjectKey(0),
            revision,
            write: WriteId(0),
            group: LabelValue(0),
        };
        Item::Event {
            kind: ChangeKind::Added,
            object,
        }
    }

    fn bookmark(revision: u64, ends_initial: bool) -> Item {
        Item::Bookmark {
            revision,
            ends_initial,
        }
    }

    fn parts(sessions: Vec<Session>, last: Option<u64>) -> Vec<(u64, u64, Range<usize>)> {
        let watcher = Watcher {
            name: "one".to_owned(),
            selector: Selector::Everything,
            sessions,
        };
        let found = intervals(&watcher, last);
        let three = |it: Interval| (it.after, it.until, it.sessions);
        found.into_iter().map(three).collect()
    }

    fn list(revision: u64) -> Start {
        Start::List {
            revision,
            objects: Vec::new(),
        }
    }

    #[test]
    fn a_resume_goes_on_and_a_list_begins_anew() {
        let sessions = vec![
            session(list(5), &[event(7), bookmark(9, false)], WatchEnd::Closed),
            session(Start::Resume { after: 9 }, &[event(12)], WatchEnd::Expired),
            session(list(20), &[event(21)], WatchEnd::Settled),
        ];
        assert_eq!(parts(sessions, Some(30)), [(5, 12, 0..2), (20, 30, 2..3)]);
    }

    #[test]
    fn initial_events_count_from_their_end() {
        let any = Start::InitialEvents { any: true };
        let sessions = vec![
            session(any.clone(), &[event(3)], WatchEnd::Closed),
            session(
                any,
                &[event(3), bookmark(8, true), event(9)],
                WatchEnd::Left,
            ),
        ];
        assert_eq!(parts(sessions, None), [(8, 9, 1..2)]);
    }

    #[test]
    fn a_hole_between_intervals_is_not_covered() {
        assert!(covers(vec![(4, 9), (1, 5)], 1, 9));
        assert!(!covers(vec![(1, 5), (6, 9)], 1, 9));
        assert!(!covers(vec![(2, 9)], 1, 9));
    }
}
