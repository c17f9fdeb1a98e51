//! The backend against a plain model: the list of everything that ever happened.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ringwatch::clock::{Clock, Instant};
use ringwatch::storage::backend::{
    Backend, BackendError, Compare, Event, EventKind, KeyRange, KeyValue, LeaseId, Op,
    RangeContent, RangeRequest, RangeResponse, Txn, WatchRequest, WatchResponses,
};

use super::opened::Opened;

/// The number of keys from which steps choose.
const KEYS: usize = 5;
/// The number of leases from which steps choose: the newest.
const LEASES: usize = 4;
/// The exclusive bound of the number of steps in a case.
const STEPS_MAX: usize = 60;

fn key(n: usize) -> String {
    format!("/{n}")
}

/// A step of the model. Revisions are percentages of the newest, so that they mean something.
#[derive(Clone, Debug)]
enum Step {
    Txn {
        compare: Guess,
        then: Do,
        otherwise: Option<Do>,
    },
    Range {
        from: usize,
        to: usize,
        at_percent: u64,
        limit: u64,
        content: u8,
    },
    Watch {
        from: usize,
        to: usize,
        start_percent: u64,
        previous: bool,
        progress: bool,
    },
    /// Reads all watches.
    Read,
    RequestProgress,
    Compact {
        percent: u64,
    },
    Grant {
        ttl_seconds: i64,
    },
    /// Time passes, and the leases whose time has come expire.
    Pass {
        seconds: u64,
    },
    /// Closes the store and opens it again, if it is in a file.
    Reopen,
}

/// A comparison that is right, or wrong by one.
#[derive(Clone, Debug)]
struct Guess {
    key: usize,
    by_version: bool,
    off: u64,
}

#[derive(Clone, Debug)]
enum Do {
    /// Puts a key, with one of the leases that were ever granted if a number says which.
    Put(usize, u8, Option<usize>),
    Delete(usize),
    Get(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let action = prop_oneof![
        4 => (0..KEYS, any::<u8>(), proptest::option::of(0..LEASES))
            .prop_map(|(key, value, lease)| Do::Put(key, value, lease)),
        2 => (0..KEYS).prop_map(Do::Delete),
        1 => (0..KEYS).prop_map(Do::Get),
    ];
    let guess = (
        0..KEYS,
        any::<bool>(),
        prop_oneof![3 => Just(0), 1 => Just(1_u64)],
    );
    let guess = guess.prop_map(|(key, by_version, off)| Guess {
        key,
        by_version,
        off,
    });
    let step = prop_oneof![
        12 => (guess, action.clone(), proptest::option::of(action))
            .prop_map(|(compare, then, otherwise)| Step::Txn { compare, then, otherwise }),
        6 => (0..=KEYS, 0..=KEYS, 0..110_u64, 0..4_u64, 0..3_u8).prop_map(
            |(from, to, at_percent, limit, content)| Step::Range { from, to, at_percent, limit, content }
        ),
        3 => (0..=KEYS, 0..=KEYS, 0..110_u64, any::<bool>(), any::<bool>()).prop_map(
            |(from, to, start_percent, previous, progress)| Step::Watch { from, to, start_percent, previous, progress }
        ),
        3 => Just(Step::Read),
        1 => Just(Step::RequestProgress),
        1 => (0..105_u64).prop_map(|percent| Step::Compact { percent }),
        2 => (0..10_i64).prop_map(|ttl_seconds| Step::Grant { ttl_seconds }),
        2 => (0..10_u64).prop_map(|seconds| Step::Pass { seconds }),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..STEPS_MAX)
}

/// A change of a key: its new value and lease, or that it was deleted.
type Change = (String, Option<(Bytes, Option<LeaseId>)>);

/// Everything that ever happened: the changes of revision 2, of revision 3, and so on.
#[derive(Debug, Default)]
struct Model {
    changes: Vec<Vec<Change>>,
    compacted: u64,
    /// The leases that have not expired, with their times to live and their deadlines.
    leases: BTreeMap<LeaseId, (Duration, Instant)>,
    /// All leases, the newest first.
    granted: Vec<LeaseId>,
}

impl Model {
    fn revision(&self) -> u64 {
        self.changes.len() as u64 + 1
    }

    fn percent(&self, percent: u64) -> u64 {
        self.revision() * percent / 100
    }

    /// Returns the changes up to a revision.
    fn until(&self, revision: u64) -> impl Iterator<Item = (u64, &Change)> {
        let revisions = (2..=revision).zip(&self.changes);
        revisions.flat_map(|(revision, changes)| changes.iter().map(move |it| (revision, it)))
    }

    /// Returns the lease of a number; `None` if none was ever granted.
    fn lease(&self, number: Option<usize>) -> Option<LeaseId> {
        self.granted
            .get(number?)
            .or_else(|| self.granted.last())
            .copied()
    }

    /// Ends the leases whose time has come: each takes the keys that are attached to it along, at one revision.
    fn expire(&mut self, now: Instant) {
        let due = self
            .leases
            .iter()
            .filter(|(_, (_, deadline))| *deadline <= now);
        let mut due: Vec<_> = due.map(|(id, (_, deadline))| (*deadline, *id)).collect();
        due.sort_unstable();
        for (_, id) in due {
            self.leases.remove(&id);
            let keys = (0..KEYS).filter_map(|n| self.get(&key(n), self.revision()));
            let attached = keys.filter(|kv| kv.lease == Some(id));
            let gone: Vec<Change> = attached.map(|kv| (kv.key, None)).collect();
            if !gone.is_empty() {
                self.changes.push(gone);
            }
        }
    }

    fn get(&self, key: &str, at: u64) -> Option<KeyValue> {
        let mut found: Option<KeyValue> = None;
        for (revision, (_, value)) in self.until(at).filter(|(_, change)| change.0 == key) {
            found = value.as_ref().map(|(value, lease)| KeyValue {
                key: key.to_owned(),
                value: value.clone(),
                create_revision: found.as_ref().map_or(revision, |it| it.create_revision),
                mod_revision: revision,
                version: found.as_ref().map_or(0, |it| it.version) + 1,
                lease: *lease,
            });
        }
        found
    }

    fn range(&self, request: &RangeRequest) -> Result<RangeResponse, BackendError> {
        let at = match request.revision {
            0 => self.revision(),
            at => at,
        };
        if at > self.revision() {
            let current = self.revision();
            return Err(BackendError::FutureRevision { current });
        }
        if at < self.compacted {
            let compact_revision = self.compacted;
            return Err(BackendError::Compacted { compact_revision });
        }
        let keys = (0..KEYS).map(key).filter(|key| holds(&request.range, key));
        let mut kvs: Vec<_> = keys.filter_map(|key| self.get(&key, at)).collect();
        let count = kvs.len() as u64;
        let limit = match request.limit {
            0 => kvs.len(),
            limit => limit as usize,
        };
        let mut more = kvs.len() > limit;
        kvs.truncate(limit);
        match request.content {
            RangeContent::Values => {}
            RangeContent::Keys => kvs.iter_mut().for_each(|kv| kv.value = Bytes::new()),
            RangeContent::Count => {
                kvs.clear();
                more = false;
            }
        }
        Ok(RangeResponse {
            revision: self.revision(),
            kvs,
            more,
            count,
        })
    }

    /// Returns the events of a watch from a revision on.
    fn events(&self, from: u64, range: &KeyRange, previous: bool) -> Vec<Event> {
        self.until(self.revision())
            .filter(|(revision, change)| *revision >= from && holds(range, &change.0))
            .map(|(revision, (key, value))| {
                let before = previous && revision > self.compacted;
                let gone = KeyValue {
                    key: key.clone(),
                    value: Bytes::new(),
                    create_revision: 0,
                    mod_revision: revision,
                    version: 0,
                    lease: None,
                };
                Event {
                    kind: match value {
                        Some(_) => EventKind::Put,
                        None => EventKind::Delete,
                    },
                    kv: self.get(key, revision).unwrap_or(gone),
                    previous: before.then(|| self.get(key, revision - 1)).flatten(),
                }
            })
            .collect()
    }
}

fn holds(range: &KeyRange, key: &str) -> bool {
    match range {
        KeyRange::Key(only) => only == key,
        KeyRange::Span(from, to) => (from.as_str()..to.as_str()).contains(&key),
    }
}

/// Equal ends mean one key, others a span, which may be empty.
fn range(from: usize, to: usize) -> KeyRange {
    match from == to {
        true => KeyRange::Key(key(from)),
        false => KeyRange::Span(key(from), key(to)),
    }
}

/// A watch and the events that it has not delivered.
struct Watching {
    responses: WatchResponses,
    request: WatchRequest,
    /// The first revision that it has not delivered.
    next: u64,
    /// True if progress was requested since it was read.
    progress_due: bool,
}

/// The backend and the model, side by side.
struct Pair<'a> {
    opened: Opened,
    path: Option<&'a Path>,
    clock: Clock,
    model: Model,
    watches: Vec<Watching>,
}

impl Pair<'_> {
    async fn step(&mut self, step: Step) {
        match step {
            Step::Txn {
                compare,
                then,
                otherwise,
            } => self.txn(compare, then, otherwise).await,
            Step::Range {
                from,
                to,
                at_percent,
                limit,
                content,
            } => {
                let request = RangeRequest {
                    range: range(from, to),
                    revision: self.model.percent(at_percent),
                    limit,
                    content: match content {
                        0 => RangeContent::Values,
                        1 => RangeContent::Keys,
                        _ => RangeContent::Count,
                    },
                };
                self.range(request).await;
            }
            Step::Watch {
                from,
                to,
                start_percent,
                previous,
                progress,
            } => {
                let request = WatchRequest {
                    range: range(from, to),
                    start_revision: self.model.percent(start_percent),
                    previous,
                    progress,
                };
                self.watch(request).await;
            }
            Step::Read => self.read(false),
            Step::RequestProgress => {
                self.opened.store.request_progress().await.unwrap();
                for watch in &mut self.watches {
                    watch.progress_due = watch.request.progress;
                }
            }
            Step::Compact { percent } => self.compact(percent).await,
            Step::Grant { ttl_seconds } => self.grant(ttl_seconds).await,
            Step::Pass { seconds } => self.pass(seconds).await,
            Step::Reopen => self.reopen().await,
        }
    }

    async fn txn(&mut self, guess: Guess, then: Do, otherwise: Option<Do>) {
        let newest = self.model.revision();
        let (name, found) = (key(guess.key), self.model.get(&key(guess.key), newest));
        let compare = match guess.by_version {
            true => Compare::Version(name, found.map_or(0, |it| it.version) + guess.off),
            false => Compare::ModRevision(name, found.map_or(0, |it| it.mod_revision) + guess.off),
        };
        let succeeded = guess.off == 0;
        let op = |action: &Do| op(action, &self.model);
        let txn = Txn {
            compare,
            then: op(&then),
            otherwise: otherwise.as_ref().map(op),
        };
        let response = self.opened.store.txn(txn).await;
        let done = if succeeded { Some(then) } else { otherwise };
        if let Some(Do::Put(_, _, lease)) = done
            && let Some(lease) = self.model.lease(lease)
            && !self.model.leases.contains_key(&lease)
        {
            assert_eq!(response.unwrap_err(), BackendError::LeaseNotFound);
            return;
        }
        let response = response.unwrap();
        let mut expected = None;
        match done {
            None => {}
            Some(Do::Get(n)) => expected = self.model.get(&key(n), newest),
            Some(Do::Delete(n)) if self.model.get(&key(n), newest).is_none() => {}
            Some(Do::Delete(n)) => self.model.changes.push(vec![(key(n), None)]),
            Some(Do::Put(n, value, lease)) => {
                let value = (Bytes::copy_from_slice(&[value]), self.model.lease(lease));
                self.model.changes.push(vec![(key(n), Some(value))]);
            }
        }
        assert_eq!(response.succeeded, succeeded);
        assert_eq!(response.found, expected);
        assert_eq!(response.revision, self.model.revision());
    }

    async fn range(&self, request: RangeRequest) {
        let expected = self.model.range(&request);
        let found = self.opened.store.range(request.clone()).await;
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found.kvs, expected.kvs, "{request:?}");
                let rest = |it: &RangeResponse| (it.revision, it.more, it.count);
                assert_eq!(rest(&found), rest(&expected), "{request:?}");
            }
            (found, expected) => assert_eq!(found.unwrap_err(), expected.unwrap_err()),
        }
    }

    async fn watch(&mut self, request: WatchRequest) {
        let responses = self.opened.store.watch(request.clone()).await.unwrap();
        self.watches.push(Watching {
            responses,
            next: match request.start_revision {
                0 => self.model.revision() + 1,
                start => start,
            },
            request,
            progress_due: false,
        });
    }

    /// Reads what the watches deliver, and keeps those that live.
    fn read(&mut self, closed: bool) {
        let model = &self.model;
        self.watches.retain_mut(|watch| {
            let compacted = watch.next < model.compacted;
            let (mut events, mut progress, mut error) = (Vec::new(), None, None);
            while let Some(item) = watch.responses.next().now_or_never() {
                match item {
                    Some(Ok(response)) if response.events.is_empty() => {
                        assert!(progress.replace(response.revision).is_none());
                    }
                    Some(Ok(mut response)) => {
                        assert!(progress.is_none(), "events behind the progress");
                        events.append(&mut response.events);
                    }
                    Some(Err(found)) => error = Some(found),
                    None => break,
                }
            }
            if compacted {
                let compact_revision = model.compacted;
                assert_eq!(error, Some(BackendError::Compacted { compact_revision }));
                assert!(events.is_empty());
                return false;
            }
            let request = &watch.request;
            let expected = model.events(watch.next, &request.range, request.previous);
            assert_eq!(events, expected, "{request:?} from {}", watch.next);
            let progressed = watch.progress_due.then(|| model.revision());
            assert_eq!(progress, progressed, "{request:?}");
            assert_eq!(error.is_some(), closed, "{error:?}");
            watch.next = watch.next.max(model.revision() + 1);
            watch.progress_due = false;
            !closed
        });
    }

    async fn compact(&mut self, percent: u64) {
        let revision = self.model.percent(percent);
        let outcome = self.opened.store.compact(revision).await;
        if revision > self.model.revision() {
            let current = self.model.revision();
            assert_eq!(outcome, Err(BackendError::FutureRevision { current }));
        } else if revision <= self.model.compacted {
            let compact_revision = self.model.compacted;
            assert_eq!(outcome, Err(BackendError::Compacted { compact_revision }));
        } else {
            assert_eq!(outcome, Ok(()));
            self.model.compacted = revision;
        }
    }

    async fn grant(&mut self, ttl_seconds: i64) {
        let lease = self.opened.store.grant_lease(ttl_seconds).await.unwrap();
        // Shorter times are raised to two seconds.
        let ttl = Duration::from_secs(ttl_seconds.max(2).unsigned_abs());
        let deadline = self.clock.now() + ttl;
        self.model.leases.insert(lease, (ttl, deadline));
        self.model.granted.insert(0, lease);
    }

    async fn pass(&mut self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        // It looks at the deadlines once, and sends one request at most.
        let store = &self.opened.store;
        let leases = store.run_leases(std::future::pending());
        assert!(leases.now_or_never().is_none(), "the store is open");
        // In a file, a request that was sent before this one is done after it.
        store.compact(u64::MAX).await.unwrap_err();
        self.model.expire(self.clock.now());
    }

    async fn reopen(&mut self) {
        let Some(path) = self.path else {
            return;
        };
        let closed = std::mem::replace(&mut self.opened, Opened::in_memory());
        closed.close().await;
        self.read(true);
        self.opened = Opened::with(Some(path), self.clock.clone());
        // Leases have their whole time again.
        for (ttl, deadline) in self.model.leases.values_mut() {
            *deadline = self.clock.now() + *ttl;
        }
    }
}

fn op(action: &Do, model: &Model) -> Op {
    match action {
        Do::Put(n, value, lease) => Op::Put {
            key: key(*n),
            value: Bytes::copy_from_slice(&[*value]),
            lease: model.lease(*lease),
        },
        Do::Delete(n) => Op::Delete { key: key(*n) },
        Do::Get(n) => Op::Get { key: key(*n) },
    }
}

/// Runs the steps, then reads every revision that there is.
async fn compare(steps: Vec<Step>, path: Option<&Path>) {
    let clock = Clock::manual(jiff::Timestamp::UNIX_EPOCH);
    let mut pair = Pair {
        opened: Opened::with(path, clock.clone()),
        clock,
        path,
        model: Model::default(),
        watches: Vec::new(),
    };
    for step in steps.into_iter().chain([Step::Read, Step::Reopen]) {
        pair.step(step).await;
    }
    for revision in 0..=pair.model.revision() + 1 {
        let everything = RangeRequest::all(KeyRange::prefix("/"));
        pair.range(RangeRequest {
            revision,
            ..everything
        })
        .await;
    }
    pair.opened.close().await;
}

fn check(cases: u32, run: impl Fn(Vec<Step>, &tokio::runtime::Runtime)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        cases,
        source_file: Some(file!()),
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&steps(), |steps| {
            run(steps, &runtime);
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_store_in_memory_does_what_the_model_does() {
    check(1_024, |steps, runtime| {
        runtime.block_on(compare(steps, None))
    });
}

#[test]
fn the_store_in_a_file_does_what_the_model_does() {
    check(32, |steps, runtime| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        runtime.block_on(compare(steps, Some(&path)));
    });
}
