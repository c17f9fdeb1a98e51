//! Rule: the writes and consistent reads of each object happened one after the other, each between its request and its
//! answer.
//!
//! Refusals say something as well: that the object was there, absent, or at another version. Of a list in pages the
//! first one's time counts, since all are of its revision. What watches brought says nothing, since it may be late.

use std::collections::{BTreeMap, HashMap};

use super::{get_name, read_name};
use crate::verify::history::{
    History, LabelValue, ListRead, Nanos, ObjectKey, Refusal, RevisionMatch, Selector, ShownObject,
    Verb, Write, WriteAnswer, WriteId,
};
use crate::verify::linearizability::{
    Counterexample, Demand, Linearizability, RegisterEffect, RegisterOperation, RegisterState,
    linearizability,
};
use crate::verify::violation::{Promise, Violation};

/// Returns the objects whose requests have no order that explains their answers, and those of which it is not known.
pub(super) fn check(history: &History) -> (Vec<Violation>, Vec<ObjectKey>) {
    let (mut found, mut undecided) = (Vec::new(), Vec::new());
    for (key, requests) in requests(history) {
        let operations: Vec<RegisterOperation> = requests.iter().map(|it| it.operation).collect();
        match linearizability(&operations) {
            Linearizability::Linearizable => {}
            Linearizability::Undecided => undecided.push(key),
            Linearizability::Broken(example) => {
                found.push(violation(history, key, &requests, &example));
            }
        }
    }
    (found, undecided)
}

/// An operation, and the request that it was.
#[derive(Clone, Copy, Debug)]
struct OperationRequest {
    operation: RegisterOperation,
    source: RequestSource,
}

/// A request by its place in the history. A list is one of each object that it selects.
#[derive(Clone, Copy, Debug)]
enum RequestSource {
    Write(WriteId),
    Get(usize),
    Read(usize, Option<ShownObject>),
}

/// Returns the requests for each object, as far as they say something of it.
fn requests(history: &History) -> BTreeMap<ObjectKey, Vec<OperationRequest>> {
    let versions = Versions::new(history);
    let mut requests: BTreeMap<ObjectKey, Vec<OperationRequest>> = BTreeMap::new();
    for (id, write) in history.named_writes() {
        let requests = requests.entry(write.key).or_default();
        requests.extend(versions.write(id, write).map(|operation| OperationRequest {
            operation,
            source: RequestSource::Write(id),
        }));
    }
    for (place, get) in history.gets.iter().enumerate() {
        let operation = versions.observation(get.found, get.invoked, get.answered);
        let source = RequestSource::Get(place);
        let request = OperationRequest { operation, source };
        requests.entry(get.key).or_default().push(request);
    }
    for (place, read) in history.reads.iter().enumerate() {
        let Some((invoked, answered)) = consistent_at(read) else {
            continue;
        };
        let shown: HashMap<ObjectKey, ShownObject> =
            read.objects().map(|it| (it.key, *it)).collect();
        for (&key, requests) in &mut requests {
            let version = shown.get(&key).copied();
            if version.is_none() && !shows_absence(&read.selector, key) {
                continue;
            }
            requests.push(OperationRequest {
                operation: versions.observation(version, invoked, answered),
                source: RequestSource::Read(place, version),
            });
        }
    }
    requests
}

/// Returns the time at which a list that demands the newest state has seen it: that of its first page. If its pages are
/// of several revisions, which is a violation of its own, there is no such time.
fn consistent_at(read: &ListRead) -> Option<(Nanos, Nanos)> {
    let first = read.pages.first()?;
    let is_one_state = read.pages.iter().all(|it| it.revision == first.revision);
    let is_consistent = read.revision_match == RevisionMatch::Newest && is_one_state;
    is_consistent.then_some((first.invoked, first.answered))
}

/// Returns true if an object that a list does not show was absent. One that is selected by its label may have another.
fn shows_absence(selector: &Selector, key: ObjectKey) -> bool {
    !selector.can_be_left() && selector.selects(key, LabelValue::NONE)
}

/// The writes by the versions that they made, as far as these were told.
#[derive(Debug, Default)]
struct Versions {
    writes: HashMap<(ObjectKey, u64), WriteId>,
    revisions: HashMap<WriteId, u64>,
}

impl Versions {
    /// Takes first the answers to writes, then what reads showed.
    fn new(history: &History) -> Self {
        let mut versions = Self::default();
        for (id, write) in history.named_writes() {
            if let WriteAnswer::Acknowledged {
                revision: Some(revision),
                ..
            } = write.answer
            {
                versions.learn(write.key, revision, id);
            }
        }
        let listed = history.reads.iter().flat_map(ListRead::objects);
        let got = history.gets.iter().filter_map(|get| get.found.as_ref());
        for object in listed.chain(got) {
            versions.learn(object.key, object.revision, object.write);
        }
        versions
    }

    fn learn(&mut self, key: ObjectKey, revision: u64, write: WriteId) {
        self.revisions.entry(write).or_insert(revision);
        self.writes.entry((key, revision)).or_insert(write);
    }

    /// Returns a write as an operation, unless it was refused for a reason that says nothing of the object.
    fn write(&self, id: WriteId, write: &Write) -> Option<RegisterOperation> {
        let base = write.base.map(|base| self.writes.get(&(write.key, base)));
        let (returned, demand, effect) = match write.answer {
            WriteAnswer::Refused { at, refusal } => {
                let demand = match (refusal, write.verb, base) {
                    (Refusal::Conflict, Verb::Create, _) => Demand::Present,
                    (Refusal::Conflict, _, Some(Some(base))) => Demand::IsNot(*base),
                    (Refusal::NotFound, Verb::Update | Verb::Delete, _) => Demand::Absent,
                    (Refusal::Conflict | Refusal::NotFound | Refusal::Other, ..) => return None,
                };
                (Some(at), demand, RegisterEffect::Observed)
            }
            WriteAnswer::Acknowledged { .. } | WriteAnswer::Uncertain => {
                let demand = match (write.verb, base) {
                    (Verb::Create, _) => Demand::Absent,
                    (_, Some(Some(base))) => Demand::Is(*base),
                    (_, None | Some(None)) => Demand::Present,
                };
                let effect = match write.verb {
                    Verb::Create | Verb::Update => RegisterEffect::Put(id),
                    Verb::Delete => RegisterEffect::Deleted,
                };
                (write.acknowledged_at(), demand, effect)
            }
        };
        Some(RegisterOperation {
            called: write.invoked,
            returned,
            demand,
            effect,
        })
    }

    /// Returns a read that showed this as an operation. A write that is shown at another version than before has
    /// happened twice, which no state can be.
    fn observation(
        &self,
        shown: Option<ShownObject>,
        invoked: Nanos,
        answered: Nanos,
    ) -> RegisterOperation {
        let demand = shown.map_or(Demand::Absent, |it| {
            let is_known = self.revisions.get(&it.write) == Some(&it.revision);
            Demand::Is(if is_known { it.write } else { WriteId::FOREIGN })
        });
        RegisterOperation {
            called: invoked,
            returned: Some(answered),
            demand,
            effect: RegisterEffect::Observed,
        }
    }
}

fn violation(
    history: &History,
    key: ObjectKey,
    requests: &[OperationRequest],
    example: &Counterexample,
) -> Violation {
    let message = "no order of these requests explains their answers".to_owned();
    let before = example.before.iter().map(|it| before(history, *it));
    let shown = example
        .operations
        .iter()
        .map(|&it| line(history, &requests[it]));
    Violation::new(Promise::Linearizable, key.to_string(), message)
        .shown_by_all(before)
        .shown_by_all(shown)
}

fn before(history: &History, state: RegisterState) -> String {
    let Some(id) = state else {
        return "before them nothing was there".to_owned();
    };
    let write = history.write(id).map(ToString::to_string);
    format!(
        "before them it was what {id} made: {}",
        write.unwrap_or_default()
    )
}

fn line(history: &History, request: &OperationRequest) -> String {
    let (name, line) = match request.source {
        RequestSource::Write(id) => (id.to_string(), history.write(id).map(ToString::to_string)),
        RequestSource::Get(place) => (
            get_name(place),
            history.gets.get(place).map(ToString::to_string),
        ),
        RequestSource::Read(place, version) => {
            let shown = version.map_or_else(|| "without it".to_owned(), |it| format!("with {it}"));
            let read = history.reads.get(place);
            (
                read_name(place),
                read.map(|read| format!("{read}; {shown}")),
            )
        }
    };
    format!("{name}: {}", line.unwrap_or_default())
}
