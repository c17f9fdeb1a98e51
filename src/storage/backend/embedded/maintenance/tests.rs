//! Stores that go through all of it: written, copied while they are written to, restored, damaged, compacted.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;
use crate::clock::Clock;
use crate::storage::backend::embedded::log::{LogBatch, LogStore, RedbLog};
use crate::storage::backend::embedded::mvcc::State;
use crate::storage::backend::embedded::{Embedded, OpenError};
use crate::storage::backend::{Backend, BackendError, Compare, LeaseId, Op, Txn};

/// Writes a store of three keys at revision 8, compacted at revision 5: /a with a lease, /b, /c. Returns its path.
fn store(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("store.redb");
    let mut log = RedbLog::open(&path).expect("a log").log;
    let mut state = State::new();
    let mut batch = LogBatch {
        granted: vec![(LeaseId(7), 60), (LeaseId(8), 3_600)],
        ..LogBatch::default()
    };
    let writes = [
        ("/a", "a value to be found in the file", Some(LeaseId(7))),
        ("/b", "two", None),
        ("/b", "three", None),
        ("/c", "four", None),
        ("/d", "five", None),
    ];
    for (key, value, lease) in writes {
        let record = state.put(key, Bytes::from_static(value.as_bytes()), lease);
        batch.records.push(record);
    }
    batch.records.extend(state.delete(["/d"]));
    let last = state.put("/b", Bytes::from_static(b"eight"), None);
    batch.records.push(last);
    log.commit(&batch).expect("a commit");
    // The record of revision 3 is obsolete, and removed.
    let removal = LogBatch {
        compacted: Some(5),
        obsolete: vec![3],
        ..LogBatch::default()
    };
    log.commit(&removal).expect("a commit");
    path
}

/// Writes a snapshot's file beside a store.
fn written(snapshot: Snapshot, path: PathBuf) -> PathBuf {
    let chunks: Vec<Bytes> = snapshot.chunks().collect();
    fs::write(&path, chunks.concat()).expect("a file");
    path
}

fn snapshot_of(store: &Path) -> PathBuf {
    let snapshot = snapshot(store).expect("a snapshot");
    written(snapshot, store.with_extension("snap"))
}

#[test]
fn a_restored_store_is_the_one_of_the_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let original = status(&store).expect("a status");
    assert_eq!((original.revision, original.compacted_revision), (8, 5));
    assert_eq!((original.keys, original.format), (3, 2));
    let snapshot = snapshot_of(&store);
    let of_snapshot = snapshot_status(&snapshot).expect("a status");
    assert_eq!(of_snapshot.digest, original.digest);
    let restored = folder.path().join("restored");
    let status_there = restore(&snapshot, &restored).expect("a store");
    assert_eq!(status(&restored).expect("a status"), status_there);
    assert_eq!(status_there.used_bytes, original.used_bytes);
    assert_eq!(status_there.digest, original.digest);
    let [first, second] = [&store, &restored].map(|it| RedbLog::open(it).expect("a log"));
    assert_eq!(first.leases, second.leases);
    assert!(first.state.live().eq(second.state.live()));
    assert!(first.state.history_from(0).eq(second.state.history_from(0)));
    drop((first, second));
    // The same content makes the same bytes.
    let again = written(
        super::snapshot(&restored).expect("one"),
        folder.path().join("again"),
    );
    assert_eq!(
        fs::read(again).expect("bytes"),
        fs::read(snapshot).expect("bytes")
    );
    for checked in [check(&store), check(&restored)] {
        let checked = checked.expect("a check");
        assert_eq!(checked.findings, [""; 0]);
        assert_eq!((checked.records, checked.revision), (6, 8));
        assert_eq!(checked.digest, original.digest);
    }
}

#[test]
fn an_empty_store_can_be_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    drop(RedbLog::open(&path).expect("a log"));
    let snapshot = snapshot_of(&path);
    let restored = restore(&snapshot, &folder.path().join("restored")).expect("a store");
    assert_eq!((restored.revision, restored.keys), (1, 0));
    let checked = check_snapshot(&snapshot).expect("a check");
    assert_eq!((checked.records, checked.findings.len()), (0, 0));
}

#[test]
fn large_content_takes_several_chunks_and_commits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let mut log = RedbLog::open(&path).expect("a log").log;
    let mut state = State::new();
    let mut batch = LogBatch::default();
    for number in 0..60 {
        let value = Bytes::from(vec![b'x'; 100 << 10]);
        let record = state.put(&format!("/{number:02}"), value, None);
        batch.records.push(record);
    }
    batch.compacted = Some(31);
    log.commit(&batch).expect("a commit");
    drop(log);
    let chunks: Vec<Bytes> = snapshot(&path).expect("a snapshot").chunks().collect();
    assert!(chunks.len() > 15, "{}", chunks.len());
    assert!(chunks.iter().all(|it| it.len() < 400 << 10));
    let restored = restore(&snapshot_of(&path), &folder.path().join("restored"));
    let original = status(&path).expect("a status");
    assert_eq!(restored.expect("a store").digest, original.digest);
}

#[test]
fn a_changed_or_missing_byte_of_a_snapshot_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let snapshot = snapshot_of(&store(&folder));
    let bytes = fs::read(&snapshot).expect("bytes");
    let damaged = folder.path().join("damaged");
    let restored = folder.path().join("restored");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x20;
        for content in [&changed[..], &bytes[..at]] {
            fs::write(&damaged, content).expect("a file");
            restore(&damaged, &restored).expect_err("a damaged snapshot");
            assert!(!restored.exists(), "nothing is written of it: {at}");
            if let Ok(checked) = check_snapshot(&damaged) {
                assert!(!checked.findings.is_empty(), "{at}");
            }
        }
    }
    let longer = [&bytes[..], b"\0"].concat();
    fs::write(&damaged, longer).expect("a file");
    let checked = check_snapshot(&damaged).expect("a check");
    assert!(checked.findings[0].contains("SHA-256"), "{checked:?}");
}

/// The digest at the end is right, as if whoever wrote the snapshot had been wrong.
#[test]
fn a_snapshot_whose_records_end_elsewhere_than_its_head_says_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = snapshot_of(&store(&folder));
    let mut bytes = fs::read(&path).expect("bytes");
    bytes.truncate(bytes.len() - seal::SEAL_BYTES);
    // The revision stands behind the magic and the format.
    bytes[20..28].copy_from_slice(&9u64.to_le_bytes());
    let seal = Sha256::digest(&bytes);
    bytes.extend_from_slice(&seal);
    fs::write(&path, bytes).expect("a file");
    let says = "its head says revision 9, its records end at 8";
    let refused = [
        restore(&path, &folder.path().join("restored")).map(drop),
        snapshot_status(&path).map(drop),
    ];
    for outcome in refused {
        let error = outcome.expect_err("it is damaged").to_string();
        assert!(error.contains(says), "{error}");
    }
    let checked = check_snapshot(&path).expect("a check");
    assert_eq!(checked.findings, [says]);
}

#[test]
fn other_files_are_not_taken_for_snapshots_or_stores() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let taken = restore(&store, &folder.path().join("restored"));
    assert!(
        matches!(taken, Err(MaintenanceError::NotASnapshot { .. })),
        "{taken:?}"
    );
    let snapshot = snapshot_of(&store);
    let taken = status(&snapshot);
    let foreign = matches!(
        taken,
        Err(MaintenanceError::Open(OpenError::Foreign { .. }))
    );
    assert!(foreign, "{taken:?}");
    let mut bytes = fs::read(&snapshot).expect("bytes");
    bytes[16] = 9;
    fs::write(&snapshot, bytes).expect("a file");
    let taken = snapshot_status(&snapshot).expect_err("a newer format");
    assert!(taken.to_string().contains("format 9"), "{taken}");
}

/// Returns where a value is in the bytes of a file, once or more.
fn places(bytes: &[u8], value: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(value.len()).enumerate();
    let places: Vec<_> = windows
        .filter_map(|(at, it)| (it == value).then_some(at))
        .collect();
    assert!(!places.is_empty());
    places
}

#[test]
fn a_changed_byte_of_a_store_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let bytes = fs::read(&store).expect("bytes");
    let value = b"a value to be found in the file";
    let places = places(&bytes, value);
    let mut changed = bytes.clone();
    for place in places {
        changed[place] ^= 1;
    }
    fs::write(&store, &changed).expect("a file");
    let checked = check(&store).expect_err("a damaged store");
    let damaged = matches!(&checked, MaintenanceError::Open(OpenError::Damaged { .. }));
    assert!(damaged, "{checked}");
    assert_eq!(
        fs::read(&store).expect("bytes"),
        changed,
        "it is not changed"
    );
}

/// There is no commit before it to begin at.
#[test]
fn a_changed_byte_of_a_restored_store_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let snapshot = snapshot_of(&store(&folder));
    let restored = folder.path().join("restored");
    restore(&snapshot, &restored).expect("a store");
    let mut bytes = fs::read(&restored).expect("bytes");
    let value = b"a value to be found in the file";
    for at in places(&bytes, value) {
        bytes[at] ^= 1;
    }
    fs::write(&restored, &bytes).expect("a file");
    let opened = RedbLog::open(&restored).expect_err("a damaged store");
    assert!(matches!(opened, OpenError::Damaged { .. }), "{opened}");
    check(&restored).expect_err("a damaged store");
    assert_eq!(fs::read(&restored).expect("bytes"), bytes);
}

/// The last commit is in pages of its own, so a server would begin at the one before.
#[test]
fn a_damaged_last_commit_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = store(&folder);
    let mut loaded = RedbLog::open(&store).expect("a log");
    let value = Bytes::from_static(b"only the last commit has this");
    let record = loaded.state.put("/last", value.clone(), None);
    let batch = LogBatch {
        records: vec![record],
        ..LogBatch::default()
    };
    loaded.log.commit(&batch).expect("a commit");
    drop(loaded);
    assert_eq!(check(&store).expect("a check").findings, [""; 0]);
    let mut bytes = fs::read(&store).expect("bytes");
    let place = places(&bytes, &value)[0];
    bytes[place] ^= 1;
    fs::write(&store, bytes).expect("a file");
    let checked = check(&store).expect("a check");
    assert_eq!(checked.revision, 8);
    assert_eq!(checked.findings.len(), 1, "{checked:?}");
    assert!(checked.findings[0].contains("last commit"), "{checked:?}");
}

#[test]
fn a_compaction_makes_the_file_smaller() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let mut log = RedbLog::open(&path).expect("a log").log;
    let mut state = State::new();
    for _ in 0..20 {
        let mut batch = LogBatch::default();
        for number in 0..10 {
            let value = Bytes::from(vec![b'x'; 50 << 10]);
            batch
                .records
                .push(state.put(&format!("/{number}"), value, None));
        }
        log.commit(&batch).expect("a commit");
    }
    drop(log);
    let before = status(&path).expect("a status");
    let compaction = compact(&path, 201).expect("a compaction");
    assert_eq!(compaction.removed_records, 190);
    assert_eq!(compaction.before_bytes, before.size_bytes);
    assert!(
        compaction.after_bytes < before.size_bytes / 4,
        "{compaction:?}"
    );
    let after = status(&path).expect("a status");
    assert_eq!(after.size_bytes, compaction.after_bytes);
    assert_eq!(after.compacted_revision, 201);
    assert_eq!(after.digest, before.digest);
    assert_eq!(check(&path).expect("a check").findings, [""; 0]);
    for revision in [201, 202] {
        let refused = compact(&path, revision).expect_err("no such revision to compact");
        let expected = matches!(refused, MaintenanceError::Revision { .. });
        assert!(expected, "{refused}");
    }
    assert_eq!(status(&path).expect("a status"), after);
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    for refused in [
        status(&path).map(drop),
        check(&path).map(drop),
        snapshot(&path).map(drop),
        compact(&path, 1).map(drop),
    ] {
        assert!(
            matches!(refused, Err(MaintenanceError::Missing { .. })),
            "{refused:?}"
        );
    }
    assert!(!path.exists());
}

#[test]
fn a_store_in_use_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = store(&folder);
    let log = RedbLog::open(&path).expect("a log");
    let refused = status(&path).expect_err("it is in use");
    let in_use = matches!(refused, MaintenanceError::Open(OpenError::InUse { .. }));
    assert!(in_use, "{refused}");
    drop(log);
    status(&path).expect("it is not in use");
}

/// Writes a key to a store that is served.
async fn put(store: &Embedded, key: &str, lease: Option<LeaseId>) -> Result<u64, BackendError> {
    let txn = Txn {
        compare: Compare::ModRevision(key.to_owned(), 0),
        then: Op::Put {
            key: key.to_owned(),
            value: Bytes::from_static(b"value"),
            lease,
        },
        otherwise: None,
    };
    Ok(store.txn(txn).await?.revision)
}

#[tokio::test]
async fn a_store_that_is_served_is_copied_as_it_is_at_that_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.redb");
    let (store, mut commits) = Embedded::open(&path, Clock::real()).expect("a store");
    let work = async {
        let lease = store.grant_lease(60).await.expect("a lease");
        put(&store, "/a", Some(lease)).await.expect("a write");
        let snapshot = store.snapshot();
        put(&store, "/b", None).await.expect("a write");
        assert_eq!(snapshot.revision(), 2);
        let digest = snapshot.digest();
        let file = written(snapshot, folder.path().join("snap"));
        assert_eq!(check_snapshot(&file).expect("a check").findings, [""; 0]);
        let restored = restore(&file, &folder.path().join("restored")).expect("a store");
        assert_eq!((restored.revision, restored.keys), (2, 1));
        assert_eq!(restored.digest, digest);
        store.close();
    };
    let commits = async move { while commits.write_batch().await {} };
    tokio::join!(work, commits);
}
