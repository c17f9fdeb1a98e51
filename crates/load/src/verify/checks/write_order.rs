//! Rule: a write that begins after an answer happens after the answered one.

use super::Facts;
use crate::verify::history::WriteId;
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let known = |(id, write)| Some((id, write, facts.timeline.revision_of(id)?));
    let mut begun: Vec<_> = facts.history.named_writes().filter_map(known).collect();
    let mut answered: Vec<_> = begun
        .iter()
        .filter_map(|(id, write, revision)| Some((write.acknowledged_at()?, *revision, *id)))
        .collect();
    begun.sort_by_key(|(_, write, _)| write.invoked);
    answered.sort_unstable_by_key(|(at, ..)| *at);
    let mut answered = answered.into_iter().peekable();
    let mut newest: Option<(u64, WriteId)> = None;
    let mut found = Vec::new();
    for (id, write, revision) in begun {
        while let Some((_, earlier, by)) = answered.next_if(|(at, ..)| *at < write.invoked) {
            newest = newest.max(Some((earlier, by)));
        }
        let Some((before, by)) = newest.filter(|(before, _)| *before >= revision) else {
            continue;
        };
        let message =
            format!("it has revision {revision}, and {by} was acknowledged at {before} before");
        let earlier = facts.history.write(by);
        found.push(
            Violation::new(Promise::WriteOrder, id.to_string(), message)
                .shown_by_all(earlier.map(|earlier| format!("{by}: {earlier}")))
                .shown_by(format_args!("{id}: {write}")),
        );
    }
    found
}
