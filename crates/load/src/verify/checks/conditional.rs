//! Rule: a conditional write happens on the version that it demands, so at most one happens on each.

use std::collections::HashMap;

use super::Facts;
use crate::verify::history::{ObjectKey, Verb, Write, WriteId};
use crate::verify::timeline::ObjectState;
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = twice_on_one_version(facts);
    let named = facts.history.named_writes();
    found.extend(named.filter_map(|(id, write)| on_another_version(facts, id, write)));
    found
}

/// Finds acknowledged writes that demanded the same version.
fn twice_on_one_version(facts: &Facts<'_>) -> Vec<Violation> {
    let mut first: HashMap<(ObjectKey, u64), (WriteId, &Write)> = HashMap::new();
    let mut found = Vec::new();
    for (id, write) in facts.history.named_writes() {
        let (Some(_), Some(base)) = (write.acknowledged_at(), write.base) else {
            continue;
        };
        let (other, earlier) = *first.entry((write.key, base)).or_insert((id, write));
        if other != id {
            let message = format!("it and {other} both replaced {} at {base}", write.key);
            found.push(
                Violation::new(Promise::LostUpdate, id.to_string(), message)
                    .shown_by(format_args!("{other}: {earlier}"))
                    .shown_by(format_args!("{id}: {write}")),
            );
        }
    }
    found
}

/// Returns the violation of a write that happened where it should have been refused.
fn on_another_version(facts: &Facts<'_>, id: WriteId, write: &Write) -> Option<Violation> {
    let revision = facts.timeline.revision_of(id)?;
    let change = facts.timeline.at(revision)?;
    let there = match change.previous {
        ObjectState::Unknown => return None,
        ObjectState::Absent => None,
        ObjectState::Present(version) => Some(version),
    };
    let fits = match (write.verb, write.base) {
        (Verb::Create, _) => there.is_none(),
        (_, Some(base)) => there.is_some_and(|it| it.revision == base),
        (_, None) => there.is_some(),
    };
    if fits || change.key != write.key {
        return None;
    }
    let there = there.map_or_else(|| "nothing".to_owned(), |it| it.to_string());
    let message = format!("it happened at {revision} on {there}");
    Some(
        Violation::new(Promise::LostUpdate, id.to_string(), message)
            .shown_by(format_args!("{id}: {write}")),
    )
}
