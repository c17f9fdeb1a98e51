//! Tests that acknowledged writes survive each single failure of the disk, and a loss of power after it.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use ringwatch_testing::disk::{Disk, Fault, FaultKind};
use tokio::sync::oneshot;

use super::lease_book::LeaseBook;
use super::log::{LoadedLog, RedbLog};
use super::mvcc::State;
use super::request::{Reply, WriterRequest};
use super::writer::Writer;
use crate::clock::{Clock, Instant};
use crate::storage::backend::{BackendError, Compare, Op, Txn};

/// Longer than a page of the database, so that the file grows.
const LARGE_BYTES: usize = 60 << 10;
/// More changes than a script makes.
const CHANGES_MAX: u32 = 2_000;
/// The step between the changes at which recovery is made to fail, since there are many.
const RECOVERY_STEP: usize = 3;

/// The values that may be found under each key: one, or several after a write that failed.
type ExpectedValues = BTreeMap<String, Vec<Option<Bytes>>>;

/// A store on a disk that fails, and the values that must be found in it.
struct FaultyStore {
    writer: Writer,
    now: Instant,
    expected: ExpectedValues,
    /// The number of writes that were tried.
    tried: usize,
}

impl FaultyStore {
    fn open(disk: &Disk, expected: ExpectedValues) -> Self {
        let now = Clock::real().now();
        let loaded = RedbLog::open_on(Path::new("log"), Box::new(disk.clone()));
        let LoadedLog {
            log,
            state,
            obsolete,
            leases,
            refusal,
        } = loaded.expect("a log that can be opened");
        let book = LeaseBook::from_log(leases, &state, now);
        let mut writer = Writer::new(state, book, Box::new(log), obsolete);
        writer.refuse(refusal);
        Self {
            writer,
            now,
            expected,
            tried: 0,
        }
    }

    fn request<T>(
        &mut self,
        request: impl FnOnce(Reply<T>) -> WriterRequest,
    ) -> Result<T, BackendError> {
        let (reply, mut outcome) = oneshot::channel();
        self.writer.commit(vec![request(reply)]);
        outcome.try_recv().expect("an answer")
    }

    /// Writes a key or deletes it. Returns true if that was acknowledged.
    fn write(&mut self, key: &str, value: Option<Bytes>) -> bool {
        let version = self.state().get(key).map_or(0, |it| it.mod_revision);
        let key = key.to_owned();
        let then = match value.clone() {
            Some(value) => Op::Put {
                key: key.clone(),
                value,
                lease: None,
            },
            None => Op::Delete { key: key.clone() },
        };
        let txn = Txn {
            compare: Compare::ModRevision(key.clone(), version),
            then,
            otherwise: None,
        };
        let outcome = self.request(|reply| WriterRequest::Txn(txn, reply));
        let expected = self.expected.entry(key).or_insert_with(|| vec![None]);
        match outcome {
            Ok(response) => {
                assert!(response.succeeded);
                *expected = vec![value];
                true
            }
            Err(_) => {
                expected.push(value);
                false
            }
        }
    }

    /// Writes in several ways, ignoring errors. Returns true if all writes were acknowledged.
    fn work(&mut self) -> bool {
        self.tried += 1;
        let text = |what: &str| Some(Bytes::from(format!("{what} {}", self.tried)));
        let own = format!("/own-{}", self.tried);
        let (small, other) = (text("small"), text("other"));
        let large = Some(Bytes::from(self.tried.to_string().repeat(LARGE_BYTES)));
        let mut all = self.write("/same", small);
        all &= self.write(&own, large);
        all &= self.write("/gone", other);
        all &= self.write("/gone", None);
        let (now, revision) = (self.now, self.state().revision());
        let ttl_seconds = 60;
        let granted = self.request(|reply| WriterRequest::Grant {
            ttl_seconds,
            now,
            reply,
        });
        all &= granted.is_ok();
        let compacted = self.request(|reply| WriterRequest::Compact { revision, reply });
        all &= !matches!(compacted, Err(BackendError::ReadOnly(_)));
        // Compacted records are removed by the next batch.
        self.writer.commit(Vec::new());
        all
    }

    fn recover(&mut self) -> Result<(), BackendError> {
        let now = self.now;
        self.request(|reply| WriterRequest::Recover { now, reply })
    }

    fn state(&self) -> State {
        self.writer.published().borrow().state.clone()
    }

    /// Checks that each key has one of the values that it may have. From now on it may have that alone.
    fn check(&mut self, when: &str) {
        let state = self.state();
        for (key, expected) in &mut self.expected {
            let found = state.get(key).map(|it| it.value.clone());
            assert!(expected.contains(&found), "{when}: {key}");
            *expected = vec![found];
        }
        let known = state.live().all(|it| self.expected.contains_key(&*it.key));
        assert!(known, "{when}: a key that nobody wrote");
    }
}

/// Returns a store in use, on a disk that then fails; `None` if the script ends before.
fn failed(fault: Fault) -> Option<(Disk, FaultyStore)> {
    let disk = Disk::new(u64::from(fault.after));
    let mut store = FaultyStore::open(&disk, ExpectedValues::new());
    assert!(store.work(), "the disk is good");
    disk.fail(fault);
    store.work();
    (disk.failures() > 0).then_some((disk, store))
}

/// Checks what is on the disk after a loss of power.
fn check_without_power(disk: &Disk, store: &FaultyStore, when: &str) {
    let expected = store.expected.clone();
    FaultyStore::open(&disk.after_power_loss(), expected).check(when);
}

/// Checks that a store on a failing disk refuses writes, and takes them again once the disk is mended.
fn check_refusing_until_mended(disk: &Disk, store: &mut FaultyStore, when: &str) {
    assert!(!store.write("/refused", None), "{when}");
    check_without_power(disk, store, when);
    disk.mend();
    assert_eq!(store.recover(), Ok(()), "{when}");
    store.check(when);
    assert!(store.work(), "{when}: writes are taken again");
    check_without_power(disk, store, when);
}

#[test]
fn what_is_acknowledged_survives_each_failure_of_the_disk() {
    let mut failures = 0;
    for after in 0..CHANGES_MAX {
        let kind = if after % 2 == 0 {
            FaultKind::Once
        } else {
            FaultKind::UntilMended
        };
        let Some((disk, mut store)) = failed(Fault { after, kind }) else {
            break;
        };
        failures += 1;
        let when = format!("failure {after}");
        check_without_power(&disk, &store, &when);
        disk.mend();
        assert_eq!(store.recover(), Ok(()), "{when}");
        store.check(&when);
        check_without_power(&disk, &store, &when);
        assert!(store.work(), "{when}: writes are taken again");
        store.check(&when);
        check_without_power(&disk, &store, &when);
    }
    assert!(failures > 20, "{failures}");
}

#[test]
fn a_recovery_that_fails_is_tried_again() {
    let mut failures = 0;
    for after in (0..CHANGES_MAX).step_by(RECOVERY_STEP) {
        let first = Fault {
            after: 5,
            kind: FaultKind::Once,
        };
        let (disk, mut store) = failed(first).expect("a failure");
        let when = format!("failure {after}");
        disk.fail(Fault {
            after,
            kind: FaultKind::UntilMended,
        });
        if store.recover().is_ok() {
            break;
        }
        failures += 1;
        check_refusing_until_mended(&disk, &mut store, &when);
    }
    assert!(failures > 3, "{failures}");
}

#[test]
fn a_log_takes_writes_again_once_there_is_room_for_the_largest() {
    let disk = Disk::new(1);
    let mut store = FaultyStore::open(&disk, ExpectedValues::new());
    disk.limit(Some(disk.size_bytes().expect("a disk that works")));
    let full = (0..CHANGES_MAX).any(|_| !store.work());
    assert!(full, "the file cannot grow");
    assert!(store.recover().is_err(), "there is little room, if any");
    assert!(!store.write("/refused", None));
    disk.limit(None);
    assert_eq!(store.recover(), Ok(()));
    store.check("when there is room");
    assert!(store.work(), "writes are taken again");
}

#[test]
fn a_log_that_cannot_be_written_is_read() {
    let first = Fault {
        after: 5,
        kind: FaultKind::Once,
    };
    let (disk, store) = failed(first).expect("a failure");
    let mut failures = 0;
    for after in 0..CHANGES_MAX {
        let disk = disk.after_power_loss();
        disk.fail(Fault {
            after,
            kind: FaultKind::UntilMended,
        });
        let when = format!("failure {after}");
        let mut store = FaultyStore::open(&disk, store.expected.clone());
        store.check(&when);
        if disk.failures() == 0 {
            break;
        }
        failures += 1;
        check_refusing_until_mended(&disk, &mut store, &when);
    }
    assert!(failures > 3, "{failures}");
}
