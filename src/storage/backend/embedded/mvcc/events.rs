//! Reading the events from a revision on.

use super::range::contains;
use super::state::{REVISION_EMPTY, State};
use crate::storage::backend::{Event, KeyRange};

/// The number of events after which a page ends; a revision is never split, so the last one may exceed it.
const PAGE_EVENTS_MAX: usize = 1_000;
/// The number of revisions after which a page ends, whether or not they concern the range.
const PAGE_REVISIONS_MAX: usize = 4_096;

/// The events of some revisions, each complete.
#[derive(Debug)]
pub(crate) struct EventPage {
    pub(crate) events: Vec<Event>,
    /// The first revision that the page does not cover.
    pub(crate) next: u64,
}

impl State {
    /// Returns a page of the events of a range from a revision on, which must not be below the compacted one; with
    /// previous values if `previous` is set and they are not compacted.
    pub(crate) fn events(&self, from: u64, range: &KeyRange, previous: bool) -> EventPage {
        let mut page = EventPage {
            events: Vec::new(),
            // There is no event at the revision of the empty store.
            next: from.max(REVISION_EMPTY + 1),
        };
        for (revision, record) in self.history.range(from..).take(PAGE_REVISIONS_MAX) {
            for key in record.keys().iter().filter(|key| contains(range, key)) {
                let before = previous
                    .then(|| self.past.get(&(key.clone(), *revision)))
                    .flatten();
                page.events.push(record.event(key, before));
            }
            page.next = revision + 1;
            if page.events.len() >= PAGE_EVENTS_MAX {
                break;
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::backend::EventKind;

    #[test]
    fn events_bring_what_they_replaced() {
        let mut state = State::new();
        state.put("/a", Bytes::from_static(b"1"), None);
        state.put("/a", Bytes::from_static(b"2"), None);
        state.put("/b", Bytes::from_static(b"x"), None);
        state.delete(["/a"]);
        let page = state.events(2, &KeyRange::Key("/a".into()), true);
        assert_eq!(page.next, 6);
        let seen: Vec<_> = page
            .events
            .iter()
            .map(|event| {
                let before = event.previous.as_ref().map(|kv| kv.value.clone());
                (event.kind, event.kv.mod_revision, before)
            })
            .collect();
        assert_eq!(
            seen,
            [
                (EventKind::Put, 2, None),
                (EventKind::Put, 3, Some(Bytes::from_static(b"1"))),
                (EventKind::Delete, 5, Some(Bytes::from_static(b"2"))),
            ]
        );
    }

    #[test]
    fn the_empty_store_has_been_looked_at() {
        let page = State::new().events(1, &KeyRange::prefix("/"), false);
        assert!(page.events.is_empty());
        assert_eq!(page.next, 2);
    }

    #[test]
    fn a_page_never_splits_a_revision() {
        let mut state = State::new();
        let keys: Vec<String> = (0..PAGE_EVENTS_MAX + 5)
            .map(|n| format!("/{n:05}"))
            .collect();
        for key in &keys {
            state.put(key, Bytes::new(), None);
        }
        state.delete(keys.iter().map(String::as_str));
        let range = KeyRange::prefix("/");
        let first = state.events(3, &range, false);
        assert_eq!(first.events.len(), PAGE_EVENTS_MAX);
        let second = state.events(first.next, &range, false);
        assert_eq!(second.events.len(), 4 + keys.len());
        assert_eq!(second.next, state.revision() + 1);
    }

    #[test]
    fn a_page_of_what_does_not_concern_ends_too() {
        let mut state = State::new();
        for _ in 0..PAGE_REVISIONS_MAX + 1 {
            state.put("/other", Bytes::new(), None);
        }
        let page = state.events(2, &KeyRange::Key("/a".into()), false);
        assert!(page.events.is_empty());
        assert_eq!(page.next, state.revision());
    }
}
