//! Rule: a read is of a revision that it may be of: the newest is not older than anything known before it began.

use super::{Facts, read_name};
use crate::verify::history::{At, ListRead, Nanos, RevisionMatch};
use crate::verify::violation::{Promise, Violation};

pub(super) fn check(facts: &Facts<'_>) -> Vec<Violation> {
    let known = KnownRevisions::new(facts);
    let reads = facts.history.reads.iter().enumerate();
    reads
        .filter_map(|(place, read)| wrong(&known, place, read))
        .collect()
}

fn wrong(known: &KnownRevisions, place: usize, read: &ListRead) -> Option<Violation> {
    let revision = read.revision();
    let violation = |rule, message| Violation::new(rule, read_name(place), message);
    match read.revision_match {
        RevisionMatch::Any => None,
        RevisionMatch::Newest => {
            let (least, source) = known.before(read.invoked())?;
            let message = format!("the newest state was of {revision}, and {least} was known");
            (revision < least).then(|| {
                violation(Promise::StaleRead, message)
                    .shown_by(source)
                    .shown_by(read)
            })
        }
        RevisionMatch::NotOlderThan(least) => (revision < least).then(|| {
            let message = format!("the answer is of {revision}, and older than {least}");
            violation(Promise::ReadRevision, message).shown_by(read)
        }),
        RevisionMatch::Exact(right) => (revision != right).then(|| {
            let message = format!("the answer is of {revision} instead of {right}");
            violation(Promise::ReadRevision, message).shown_by(read)
        }),
    }
}

/// The revisions that were known at any time, from answers to writes and newer reads.
#[derive(Debug)]
pub(super) struct KnownRevisions {
    /// The times at which a revision became known, each with the newest revision known by then, and from what.
    moments: Vec<(Nanos, u64, RevisionSource)>,
}

#[derive(Clone, Copy, Debug)]
enum RevisionSource {
    Write(u32),
    Read(usize),
}

impl KnownRevisions {
    pub(super) fn new(facts: &Facts<'_>) -> Self {
        let writes = facts.history.named_writes().filter_map(|(id, write)| {
            let revision = facts.timeline.revision_of(id)?;
            Some((
                write.acknowledged_at()?,
                revision,
                RevisionSource::Write(id.0),
            ))
        });
        let reads = facts.history.reads.iter().enumerate();
        let reads = reads.map(|(place, read)| {
            (
                read.answered(),
                read.revision(),
                RevisionSource::Read(place),
            )
        });
        let mut moments: Vec<_> = writes.chain(reads).collect();
        moments.sort_unstable_by_key(|(at, ..)| *at);
        let mut newest: Option<(u64, RevisionSource)> = None;
        for (_, revision, source) in &mut moments {
            match newest {
                Some((known, from)) if known >= *revision => (*revision, *source) = (known, from),
                _ => newest = Some((*revision, *source)),
            }
        }
        Self { moments }
    }

    /// Returns the newest revision that was known before a time, and from what.
    pub(super) fn before(&self, time: Nanos) -> Option<(u64, String)> {
        let place = self.moments.partition_point(|(at, ..)| *at < time);
        let (at, revision, source) = self.moments.get(place.checked_sub(1)?)?;
        let source = match source {
            RevisionSource::Write(id) => format!("write {id} was acknowledged"),
            RevisionSource::Read(place) => format!("read {place} was answered"),
        };
        let line = format!("{}: {source} at revision {revision}", at_most(*at));
        Some((*revision, line))
    }
}

/// Writes a moment as a bound: that which is shown may be a later one, at which the revision was still the newest.
fn at_most(at: Nanos) -> String {
    format!("by {}", At(at))
}
