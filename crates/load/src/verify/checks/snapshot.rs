//! Rule: a list is the state of its revision: every object that was there, at the version that it had.

use std::collections::BTreeMap;
use std::fmt;

use super::{Facts, read_name, write_of};
use crate::verify::history::{Item, ListRead, ObjectKey, SeenItem, Selector, ShownObject};
use crate::verify::timeline;
use crate::verify::violation::{Promise, Violation};

/// The objects at a revision. Those whose existence is not known are not in it.
pub(super) type ObjectsAt = BTreeMap<ObjectKey, ShownObject>;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut reads: Vec<(usize, &ListRead)> = facts.history.reads.iter().enumerate().collect();
    // Pages of several revisions are no state at all, which is for another rule to say.
    reads.retain(|(_, read)| {
        let mut pages = read.pages.iter();
        pages.all(|page| page.revision == read.revision())
    });
    reads.sort_by_key(|(_, read)| read.revision());
    let revisions: Vec<u64> = reads.iter().map(|(_, read)| read.revision()).collect();
    let mut found = Vec::new();
    let mut reads = reads.into_iter();
    states(facts, &revisions, |state| {
        let Some((place, read)) = reads.next() else {
            return;
        };
        let Some(difference) = Difference::find(facts, state, &read.selector, read.objects())
        else {
            return;
        };
        let message = format!("a list of {}: {difference}", read.revision());
        found.push(
            Violation::new(Promise::Snapshot, read_name(place), message)
                .shown_by_all(difference.write(facts))
                .shown_by(read),
        );
    });
    found
}

/// Hands over the state at each of these revisions, which rise.
pub(super) fn states(facts: &Facts<'_>, revisions: &[u64], mut take: impl FnMut(&ObjectsAt)) {
    let mut state = ObjectsAt::new();
    let mut applied = 0;
    for &revision in revisions {
        for change in facts.timeline.between(applied, revision) {
            match change.after() {
                timeline::ObjectState::Present(object) => state.insert(change.key, object),
                timeline::ObjectState::Absent | timeline::ObjectState::Unknown => {
                    state.remove(&change.key)
                }
            };
        }
        applied = applied.max(revision);
        take(&state);
    }
}

/// The first object in which what is shown differs from what there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    key: ObjectKey,
    right: Option<ShownObject>,
    shown: Option<ShownObject>,
}

impl Difference {
    pub(super) fn find<'a>(
        facts: &Facts<'_>,
        state: &ObjectsAt,
        selector: &Selector,
        shown: impl Iterator<Item = &'a ShownObject>,
    ) -> Option<Self> {
        let mut shown: BTreeMap<ObjectKey, ShownObject> = shown.map(|it| (it.key, *it)).collect();
        for (&key, right) in state {
            let shown = shown.remove(&key);
            if facts.timeline.is_doubtful(key) || !selector.selects(key, right.group) {
                // What is not selected and shown nevertheless is found below.
                if let (Some(wrong), false) = (shown, facts.timeline.is_doubtful(key)) {
                    return Some(Self {
                        key,
                        right: None,
                        shown: Some(wrong),
                    });
                }
                continue;
            }
            if shown.is_none_or(|it| it.revision != right.revision) {
                return Some(Self {
                    key,
                    right: Some(*right),
                    shown,
                });
            }
        }
        let mut rest = shown.into_iter();
        let (key, wrong) = rest.find(|(key, _)| !facts.timeline.is_doubtful(*key))?;
        Some(Self {
            key,
            right: None,
            shown: Some(wrong),
        })
    }

    /// Returns the lines about the writes that should show, or should not.
    pub(super) fn write(&self, facts: &Facts<'_>) -> Vec<String> {
        let versions = [self.right, self.shown].into_iter().flatten();
        versions
            .filter_map(|version| write_of(facts, version.revision))
            .collect()
    }

    /// Returns the events of the object.
    pub(super) fn seen<'a>(&self, seen: &'a [SeenItem]) -> impl Iterator<Item = &'a SeenItem> {
        let key = self.key;
        seen.iter().filter(
            move |seen| matches!(seen.item, Item::Event { object, .. } if object.key == key),
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key;
        match (self.right, self.shown) {
            (Some(right), Some(shown)) => write!(
                f,
                "{key} is shown at {} instead of {}",
                shown.revision, right.revision
            ),
            (Some(right), None) => write!(f, "{key} at {} is missing", right.revision),
            (None, Some(shown)) => {
                write!(f, "{key} at {} should not be there", shown.revision)
            }
            (None, None) => write!(f, "{key} is as it should be"),
        }
    }
}
