//! Clients that create, change and delete the same few objects, each on the version that it knows, but for some
//! updates.
//!
//! They know of each other's writes what they are told, and no more. So now and then a write meets
//! another version and is refused; and after an answer that stays away they have to look.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::json;

use super::journal::Journal;
use super::objects::{self, ObjectContent};
use super::reconnecting::{
    ListRequest, RETRY_PAUSE, ReconnectingConnection, SelectedObjects, refusal,
};
use super::resource::Resource;
use crate::client::{ClientError, ClientRequest, Encoding, RequestContent, Response};
use crate::time::{Instant, now};
use crate::verify::history::{
    LabelValue, ObjectKey, Refusal, RevisionMatch, Selector, Verb, Write, WriteAnswer, WriteId,
};

/// The part of the writes to an object that is there that delete it, in percent.
const DELETIONS_PERCENT: u32 = 20;
/// The part of the updates that take whatever version is there, in percent.
const UNCONDITIONAL_PERCENT: u32 = 10;
/// The text with which etcd refuses a write because its quota is reached. API servers pass it on with a 500.
const OUT_OF_SPACE: &str = "database space exceeded";

/// The part that the writers of a run share.
#[derive(Debug)]
pub(super) struct KnownObjects {
    pub(super) resource: Resource,
    pub(super) run: String,
    /// The path of the objects' collection.
    pub(super) collection: String,
    /// The objects that are written.
    pub(super) keys: Range<u32>,
    pub(super) groups: u8,
    /// The known states of objects; a missing one has to be looked up.
    known: Mutex<HashMap<ObjectKey, Option<KnownObject>>>,
}

/// The version and group of an object when it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownObject {
    revision: u64,
    group: LabelValue,
}

impl KnownObjects {
    pub(super) fn new(resource: Resource, namespace: &str, keys: Range<u32>, groups: u8) -> Self {
        let absent = keys.clone().map(|key| (ObjectKey(key), None));
        Self {
            run: namespace.to_owned(),
            collection: resource.in_namespace(namespace),
            resource,
            keys,
            groups,
            known: Mutex::new(absent.collect()),
        }
    }

    /// Returns the known state of an object: that it is absent, its version, or nothing.
    fn look(&self, key: ObjectKey) -> Option<Option<KnownObject>> {
        self.known().get(&key).copied()
    }

    /// Replaces a known state by another, unless somebody has learnt a newer one since.
    fn learn(&self, key: ObjectKey, from: Option<KnownObject>, to: Option<Option<KnownObject>>) {
        let mut known = self.known();
        let newest = known.get(&key).copied();
        let is_newer = |to: Option<KnownObject>| {
            let newest = newest.flatten().map_or(0, |it| it.revision);
            to.is_some_and(|it| it.revision > newest)
        };
        match to {
            _ if newest == Some(from) || newest.is_none() => match to {
                Some(to) => drop(known.insert(key, to)),
                None => drop(known.remove(&key)),
            },
            Some(to) if is_newer(to) => drop(known.insert(key, to)),
            _ => {}
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, Option<KnownObject>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client that writes to random objects of the run.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    pub(super) objects: &'a KnownObjects,
    pub(super) journal: &'a Journal,
    pub(super) connection: ReconnectingConnection,
    pub(super) encoding: Encoding,
    pub(super) random: StdRng,
}

impl Writer<'_> {
    /// Writes once in every pause until the given time.
    pub(super) async fn run(mut self, pause: Duration, until: Instant) {
        let mut ticks = tokio::time::interval(pause);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while now() < until {
            ticks.tick().await;
            // What was not sent has not happened, so only the answer is missed.
            if self.step().await.is_err() {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }

    async fn step(&mut self) -> Result<(), ClientError> {
        self.connection.connect().await?;
        let key = ObjectKey(self.random.random_range(self.objects.keys.clone()));
        let Some(known) = self.objects.look(key) else {
            return self.look_up(key).await;
        };
        let verb = match known {
            None => Verb::Create,
            Some(_) if self.random.random_ratio(DELETIONS_PERCENT, 100) => Verb::Delete,
            Some(_) => Verb::Update,
        };
        let group = match (known, verb) {
            (Some(known), Verb::Delete) => known.group,
            _ => LabelValue(self.random.random_range(0..self.objects.groups)),
        };
        let is_unconditional =
            verb == Verb::Update && self.random.random_ratio(UNCONDITIONAL_PERCENT, 100);
        let base = known.map(|it| it.revision).filter(|_| !is_unconditional);
        let id = self.journal.begin(|invoked| Write {
            key,
            verb,
            base,
            group,
            // A deletion sends its options alone, which are always in JSON.
            encoding: Some(self.encoding)
                .filter(|_| verb != Verb::Delete)
                .unwrap_or(Encoding::Json),
            invoked,
            answer: WriteAnswer::Uncertain,
        });
        let answer = self
            .connection
            .ask(self.request(id, key, verb, base, group))
            .await;
        let (answer, learnt) = judge(verb, group, answer.as_ref().ok());
        self.journal.answer(id, |at| match answer {
            WriteOutcome::Done(revision) => WriteAnswer::Acknowledged { at, revision },
            WriteOutcome::Refused(refusal) => WriteAnswer::Refused { at, refusal },
            WriteOutcome::Unknown => WriteAnswer::Uncertain,
        });
        self.objects.learn(key, known, learnt);
        Ok(())
    }

    fn request(
        &self,
        write: WriteId,
        key: ObjectKey,
        verb: Verb,
        base: Option<u64>,
        group: LabelValue,
    ) -> ClientRequest {
        let collection = &self.objects.collection;
        let wanted = ObjectContent {
            resource: &self.objects.resource,
            run: &self.objects.run,
            key,
            group,
            write,
            base,
        };
        let request = match verb {
            Verb::Create => ClientRequest::post(collection, wanted.content(self.encoding)),
            Verb::Update => {
                ClientRequest::put(format!("{collection}/{key}"), wanted.content(self.encoding))
            }
            Verb::Delete => {
                let options = json!({
                    "kind": "DeleteOptions",
                    "apiVersion": "v1",
                    "preconditions": {"resourceVersion": base.map(|base| base.to_string())},
                });
                ClientRequest::delete(format!("{collection}/{key}"))
                    .with(RequestContent::json(&options))
            }
        };
        // Every answer is read in JSON, whatever was sent.
        request.accepting(Encoding::Json)
    }

    /// Reads how an object is, in a way that the checks see.
    async fn look_up(&mut self, key: ObjectKey) -> Result<(), ClientError> {
        let request = ListRequest {
            scope: &SelectedObjects::namespace(&self.objects.collection),
            selector: &Selector::Name(key),
            revision_match: RevisionMatch::Newest,
            limit: None,
            encoding: self.encoding,
        };
        let (_, read) = self.connection.list(self.journal, &request).await?;
        let found = read.objects().next().map(|object| KnownObject {
            revision: object.revision,
            group: object.group,
        });
        self.objects.learn(key, None, Some(found));
        Ok(())
    }
}

/// A write according to its answer: done, at a revision if the answer shows it; refused; or unknown.
#[derive(Debug, PartialEq, Eq)]
enum WriteOutcome {
    Done(Option<u64>),
    Refused(Refusal),
    Unknown,
}

/// Returns the meaning of an answer for the write, and for the state of the object.
fn judge(
    verb: Verb,
    group: LabelValue,
    answer: Option<&Response>,
) -> (WriteOutcome, Option<Option<KnownObject>>) {
    let Some(answer) = answer else {
        return (WriteOutcome::Unknown, None);
    };
    let is_out_of_space = || String::from_utf8_lossy(&answer.body).contains(OUT_OF_SPACE);
    if answer.status.is_client_error() || !answer.status.is_success() && is_out_of_space() {
        // It did not happen, so something else has.
        return (WriteOutcome::Refused(refusal(answer)), None);
    }
    if !answer.status.is_success() {
        return (WriteOutcome::Unknown, None);
    }
    if verb == Verb::Delete {
        return (WriteOutcome::Done(None), Some(None));
    }
    let object = objects::object(&answer.body, Encoding::Json).ok().flatten();
    // An answer that does not show what was written leaves open when it happened.
    object.map_or((WriteOutcome::Unknown, None), |object| {
        let revision = object.revision;
        (
            WriteOutcome::Done(Some(revision)),
            Some(Some(KnownObject { revision, group })),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(revision: u64) -> Option<KnownObject> {
        let group = LabelValue(0);
        Some(KnownObject { revision, group })
    }

    #[test]
    fn a_late_answer_does_not_undo_what_is_newer() {
        let objects = KnownObjects::new(Resource::secrets(), "r", 0..1, 1);
        let key = ObjectKey(0);
        assert_eq!(objects.look(key), Some(None));
        objects.learn(key, None, Some(known(5)));
        objects.learn(key, known(5), Some(known(8)));
        objects.learn(key, known(5), Some(known(6)));
        assert_eq!(objects.look(key), Some(known(8)));
        objects.learn(key, known(5), None);
        assert_eq!(objects.look(key), Some(known(8)));
        objects.learn(key, known(8), None);
        assert_eq!(objects.look(key), None);
    }

    #[test]
    fn answers_are_judged() {
        let answer = |status: u16, body: &'static str| Response {
            status: http::StatusCode::from_u16(status).expect("a status"),
            body: body.into(),
        };
        let outcome = |verb, answer: &Response| judge(verb, LabelValue(0), Some(answer)).0;
        let made = r#"{"metadata":{"name":"object-0000","resourceVersion":"9"}}"#;
        assert_eq!(
            outcome(Verb::Create, &answer(201, made)),
            WriteOutcome::Done(Some(9))
        );
        assert_eq!(
            outcome(Verb::Delete, &answer(200, "{}")),
            WriteOutcome::Done(None)
        );
        for (status, body, refusal) in [
            (409, r#"{"reason":"Conflict"}"#, Refusal::Conflict),
            (409, r#"{"reason":"AlreadyExists"}"#, Refusal::Conflict),
            (
                404,
                r#"{"reason":"NotFound","details":{"name":"n"}}"#,
                Refusal::NotFound,
            ),
            (404, r#"{"reason":"NotFound","details":{}}"#, Refusal::Other),
            (404, "404 page not found", Refusal::Other),
            (429, r#"{"reason":"TooManyRequests"}"#, Refusal::Other),
            (
                500,
                r#"{"message":"etcdserver: mvcc: database space exceeded"}"#,
                Refusal::Other,
            ),
        ] {
            let outcome = outcome(Verb::Update, &answer(status, body));
            assert_eq!(outcome, WriteOutcome::Refused(refusal), "{body}");
        }
        assert_eq!(
            outcome(Verb::Update, &answer(504, "{}")),
            WriteOutcome::Unknown
        );
        assert_eq!(
            judge(Verb::Update, LabelValue(0), None).0,
            WriteOutcome::Unknown
        );
    }
}
