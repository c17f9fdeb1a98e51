//! The rules, one file each: from what happened to what was broken.
//!
//! Each is a function over the history and the timeline made of it, so that what it finds depends on
//! nothing else. A rule names only what is its own: what came late is late, not missing.

mod conditional;
mod final_state;
mod gap;
mod initial;
mod linearizable;
mod never_written;
mod order;
mod pages;
mod read_revision;
mod snapshot;
mod tally;
mod transition;
mod unresolved;
mod write_order;

pub(super) use final_state::difference;
pub(crate) use tally::Tally;

use super::coverage::{Interval, intervals};
use super::history::{History, ListRead, ObjectKey, Watcher};
use super::timeline::Timeline;
use super::violation::Violation;

/// The facts that the rules check.
#[derive(Clone, Copy, Debug)]
struct Facts<'a> {
    history: &'a History,
    timeline: &'a Timeline,
}

impl<'a> Facts<'a> {
    /// Returns the revision of the final state.
    fn last(&self) -> Option<u64> {
        self.history.final_state().map(ListRead::revision)
    }

    /// Returns every unbroken run of watches, with its watcher.
    fn intervals(&self) -> impl Iterator<Item = (&'a Watcher, Interval)> {
        let last = self.last();
        let watchers = self.history.watchers.iter();
        watchers.flat_map(move |watcher| {
            let intervals = intervals(watcher, last).into_iter();
            intervals.map(move |interval| (watcher, interval))
        })
    }
}

/// The result of all checks of a history.
#[derive(Debug)]
pub(super) struct CheckResult {
    /// Everything that is wrong, by rule.
    pub(crate) violations: Vec<Violation>,
    /// The objects of whose requests there are too many orders to find one that explains their answers.
    pub(crate) undecided: Vec<ObjectKey>,
    /// The events of each watcher.
    pub(crate) tallies: Vec<Tally>,
}

/// Compares a history with what must hold.
pub(crate) fn check(history: &History) -> CheckResult {
    let mut timeline = Timeline::new(history);
    let mut found = std::mem::take(&mut timeline.contradictions);
    let facts = Facts {
        history,
        timeline: &timeline,
    };
    let rules: [fn(&Facts<'_>) -> Vec<Violation>; 12] = [
        order::check,
        gap::check,
        unresolved::check,
        transition::check,
        never_written::check,
        initial::check,
        write_order::check,
        conditional::check,
        read_revision::check,
        snapshot::check,
        pages::check,
        final_state::check,
    ];
    for rule in rules {
        found.extend(rule(&facts));
    }
    let (broken, undecided) = linearizable::check(history);
    found.extend(broken);
    found.sort_by_key(|violation| violation.rule);
    CheckResult {
        violations: found,
        undecided,
        tallies: tally::tallies(&facts),
    }
}

/// Returns the line about the write that made a change, if that is known.
fn write_of(facts: &Facts<'_>, revision: u64) -> Option<String> {
    let id = facts.timeline.write_at(revision)?;
    let write = facts.history.write(id)?;
    Some(format!("{id}: {write}"))
}

/// Returns a read's name in reports.
fn read_name(place: usize) -> String {
    format!("read {place}")
}

/// Returns the name of a read of one object in reports.
fn get_name(place: usize) -> String {
    format!("get {place}")
}
