//! Rule: an event's type says whether its object entered the selection, stayed in it or left it.

use super::{Facts, write_of};
use crate::verify::expectation::Expectation;
use crate::verify::history::{ChangeKind, Item, SeenItem, ShownObject, Watcher};
use crate::verify::timeline::ChangeEffect;
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for watcher in &facts.history.watchers {
        for session in &watcher.sessions {
            let (_, seen) = session.split_initial();
            let broken = seen.iter().filter_map(|seen| broken(facts, watcher, seen));
            found.extend(broken);
        }
    }
    found
}

fn broken(facts: &Facts<'_>, watcher: &Watcher, seen: &SeenItem) -> Option<Violation> {
    let Item::Event { kind, object } = &seen.item else {
        return None;
    };
    let change = facts.timeline.at(object.revision)?;
    if change.key != object.key || change.effect == ChangeEffect::Unclear {
        return None;
    }
    let expectation = Expectation::new(change, &watcher.selector);
    let message = wrong(expectation, *kind, object)?;
    let before = match change.previous {
        crate::verify::timeline::ObjectState::Present(it) => Some(format!("before: {it}")),
        _ => None,
    };
    let violation = Violation::new(
        Promise::Transition,
        format!("watcher {}", watcher.name),
        message,
    );
    Some(
        violation
            .shown_by(format_args!("it selects {:?}", watcher.selector))
            .shown_by_all(before)
            .shown_by_all(write_of(facts, object.revision))
            .shown_by(seen),
    )
}

/// Returns the fault of an event.
fn wrong(expectation: Expectation, kind: ChangeKind, object: &ShownObject) -> Option<String> {
    let about = format!("{} at {}", object.key, object.revision);
    match expectation {
        Expectation::Anything => None,
        Expectation::AddedOrModified => {
            (kind == ChangeKind::Deleted).then(|| format!("{about} is there, and came as DELETED"))
        }
        Expectation::Nothing => Some(format!("{about} is not selected, and came as {kind}")),
        Expectation::Event(right, _) if right != kind => {
            Some(format!("{about} came as {kind} instead of {right}"))
        }
        Expectation::Event(_, Some(last)) if last.write != object.write => Some(format!(
            "{about} left with the content of {}, and the last selected was of {}",
            object.write, last.write
        )),
        Expectation::Event(..) => None,
    }
}
