//! A tally of each watcher: how many events it had to get, and how many it got. The first is counted from what was
//! written and from where its watches began and how far they came, the second from what they brought.
//!
//! Some events may or may not come: that of a write that was never answered, and those of an object of which
//! not everything was seen. They are counted apart, as uncertain, and are in neither of the two.

use super::{Facts, initial};
use crate::verify::coverage::intervals;
use crate::verify::expectation::Expectation;
use crate::verify::history::{Item, Watcher};
use crate::verify::timeline::ObjectChange;

/// The events of one watcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Objects that initial events showed.
    pub(crate) initial: Count,
    /// Changes that came after the start of a watch.
    pub(crate) changes: Count,
    /// Events that may or may not have had to come.
    pub(crate) uncertain: u64,
    /// All changes of the watcher's selection, whether there was a watch or not.
    pub(crate) selected: u64,
}

/// The number that had to come, and the number that came, of events or objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) expected: u64,
    pub(crate) received: u64,
}

/// Returns a tally for each watcher, in their order.
pub(super) fn tallies(facts: &Facts<'_>) -> Vec<Tally> {
    let watchers = &facts.history.watchers;
    let mut tallies: Vec<Tally> = watchers.iter().map(|it| of_changes(facts, it)).collect();
    let is_certain = |key| !facts.timeline.is_doubtful(key);
    initial::each_end(facts, |end, state| {
        let selector = &watchers[end.watcher].selector;
        let selected = state
            .values()
            .filter(|it| selector.selects(it.key, it.group));
        let expected = selected.filter(|it| is_certain(it.key)).count();
        let (events, _) = end.session.split_initial();
        let (shown, _) = initial::shown(events);
        let received = shown.keys().filter(|key| is_certain(**key)).count();
        let count = &mut tallies[end.watcher].initial;
        count.expected += expected as u64;
        count.received += received as u64;
    });
    tallies
}

fn of_changes(facts: &Facts<'_>, watcher: &Watcher) -> Tally {
    let expectation = |change: &ObjectChange| Expectation::new(change, &watcher.selector);
    let demanded = |changes: &[ObjectChange]| {
        let demanded = changes.iter().filter(|it| expectation(it).is_demanded());
        demanded.count() as u64
    };
    let mut tally = Tally {
        selected: demanded(facts.timeline.changes()),
        ..Tally::default()
    };
    for interval in intervals(watcher, facts.last()) {
        tally.changes.expected += demanded(facts.timeline.between(interval.after, interval.until));
    }
    let sessions = watcher.sessions.iter();
    for seen in sessions.flat_map(|session| session.split_initial().1) {
        let Item::Event { object, .. } = &seen.item else {
            continue;
        };
        let change = facts.timeline.at(object.revision);
        if change.is_some_and(|it| expectation(it) == Expectation::Anything) {
            tally.uncertain += 1;
        } else {
            tally.changes.received += 1;
        }
    }
    tally
}
