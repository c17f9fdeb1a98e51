//! Opening database files: good, foreign, damaged, in use.

use std::fs;
use std::path::{Path, PathBuf};

use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::{Embedded, OpenError};
use ringwatch::storage::backend::{Backend, BackendError, KeyRange, RangeRequest};
use tempfile::TempDir;

use super::opened::Opened;
use super::requests::{all, delete, put};

/// The number of keys that a database in these tests holds.
const KEYS: usize = 300;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ringwatch.db");
    (folder, path)
}

/// Returns a value that is not the same anywhere, so that damage cannot hide.
fn value(n: usize) -> String {
    format!("{n:08}").repeat(40)
}

fn contents() -> Vec<(String, String)> {
    (0..KEYS).map(|n| (format!("/{n:04}"), value(n))).collect()
}

/// A database with known contents; `kill` leaves it as the end of the process would.
async fn database(path: &Path, kill: bool) {
    let original = path.with_extension("original");
    let opened = Opened::at(&original);
    for (key, value) in contents() {
        put(&*opened.store, &key, &value).await;
    }
    if kill {
        fs::copy(&original, path).unwrap();
        opened.close().await;
    } else {
        opened.close().await;
        fs::rename(&original, path).unwrap();
    }
}

/// Opening fails, the file does not change, and the message names it.
fn refused(path: &Path) -> OpenError {
    let before = fs::read(path).unwrap();
    let error = Embedded::open(path, Clock::real()).unwrap_err();
    assert!(fs::read(path).unwrap() == before, "{error}: it was changed");
    let message = error.to_string();
    assert!(message.starts_with(path.to_str().unwrap()), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    error
}

#[tokio::test]
async fn a_missing_file_is_created_for_its_owner_alone() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path);
    assert_eq!(put(&*opened.store, "/a", "1").await, 2);
    assert!(opened.store.size_bytes().await.unwrap() > 0);
    opened.close().await;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).unwrap());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_close_and_after_a_kill() {
    for kill in [false, true] {
        let (_folder, path) = folder();
        database(&path, kill).await;
        let opened = Opened::at(&path);
        assert!(all(&*opened.store).await == contents(), "kill: {kill}");
        assert_eq!(put(&*opened.store, "/a", "1").await, KEYS as u64 + 2);
        opened.close().await;
    }
}

#[tokio::test]
async fn a_compaction_larger_than_one_batch_survives_a_restart_in_its_middle() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path);
    let mut newest = 0;
    for n in 0..1_300 {
        newest = match n % 3 {
            2 => delete(&*opened.store, "/gone").await,
            1 => put(&*opened.store, "/gone", "x").await,
            _ => put(&*opened.store, "/kept", &n.to_string()).await,
        };
    }
    opened.store.compact(newest).await.unwrap();
    opened.close().await;
    for _ in 0..2 {
        let opened = Opened::at(&path);
        let kept = ("/kept".to_owned(), "1299".to_owned());
        assert_eq!(all(&*opened.store).await, [kept]);
        let old = RangeRequest {
            revision: newest - 1,
            ..RangeRequest::all(KeyRange::prefix("/"))
        };
        let refused = opened.store.range(old).await.unwrap_err();
        let compact_revision = newest;
        assert_eq!(refused, BackendError::Compacted { compact_revision });
        opened.close().await;
    }
}

#[tokio::test]
async fn a_truncated_file_is_refused_and_left_as_it_is() {
    for kill in [false, true] {
        let (_folder, path) = folder();
        database(&path, kill).await;
        let whole = fs::read(&path).unwrap();
        for part in [
            1,
            5,
            100,
            319,
            320,
            4_096,
            8_192,
            whole.len() / 3,
            whole.len() - 1,
        ] {
            fs::write(&path, &whole[..part]).unwrap();
            let error = refused(&path);
            let damaged = matches!(error, OpenError::Damaged { .. });
            let foreign = matches!(error, OpenError::Foreign { .. });
            assert!(damaged || (foreign && part < 9), "{part}: {error}");
        }
    }
}

#[tokio::test]
async fn a_changed_byte_is_noticed_or_does_not_matter() {
    for kill in [false, true] {
        let (_folder, path) = folder();
        database(&path, kill).await;
        let whole = fs::read(&path).unwrap();
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
        let mut noticed = 0;
        let header = (0..64).flat_map(|position| [(position, 0x55), (position, 0x02)]);
        let pages = (64..used).step_by(used / 120);
        for (position, bits) in header.chain(pages.map(|position| (position, 0xff))) {
            let mut changed = whole.clone();
            changed[position] ^= bits;
            fs::write(&path, &changed).unwrap();
            match Embedded::open(&path, Clock::real()) {
                Ok((store, _commits)) => {
                    // The last commit may look like one that a crash cut off.
                    let found = all(&store).await;
                    let expected = contents();
                    let but_last = expected[..KEYS - 1] == found;
                    assert!(but_last || expected == found, "byte {position}");
                }
                Err(_) => {
                    fs::write(&path, &changed).unwrap();
                    refused(&path);
                    noticed += 1;
                }
            }
        }
        assert!(noticed > 0);
    }
}

#[test]
fn a_foreign_file_is_refused_and_left_as_it_is() {
    let (_folder, path) = folder();
    for content in [&b"apiVersion: v1\n"[..], &[0x7f; 100_000]] {
        fs::write(&path, content).unwrap();
        assert!(matches!(refused(&path), OpenError::Foreign { .. }));
    }
}

#[test]
fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let (_folder, path) = folder();
    let other = redb::Database::create(&path).unwrap();
    let txn = other.begin_write().unwrap();
    let table = redb::TableDefinition::<u64, u64>::new("theirs");
    txn.open_table(table).unwrap().insert(1, 1).unwrap();
    txn.commit().unwrap();
    drop(other);
    assert!(matches!(refused(&path), OpenError::Foreign { .. }));
}

#[tokio::test]
async fn a_database_of_a_newer_format_is_refused_and_left_as_it_is() {
    let (_folder, path) = folder();
    Opened::at(&path).close().await;
    let raw = redb::Database::create(&path).unwrap();
    let txn = raw.begin_write().unwrap();
    let meta = redb::TableDefinition::<&str, u64>::new("ringwatch.meta");
    txn.open_table(meta).unwrap().insert("format", 3).unwrap();
    txn.commit().unwrap();
    drop(raw);
    let newer = refused(&path);
    assert!(matches!(
        newer,
        OpenError::Format {
            found: 3,
            known: 2,
            ..
        }
    ));
    assert!(newer.to_string().contains("has format 3"), "{newer}");
}

#[tokio::test]
async fn a_lost_revision_is_noticed() {
    let (_folder, path) = folder();
    database(&path, false).await;
    let raw = redb::Database::create(&path).unwrap();
    let txn = raw.begin_write().unwrap();
    let records = redb::TableDefinition::<u64, &[u8]>::new("ringwatch.records");
    let mut table = txn.open_table(records).unwrap();
    assert!(table.remove(7).unwrap().is_some());
    drop(table);
    txn.commit().unwrap();
    drop(raw);
    assert!(refused(&path).to_string().contains("revision 7 is missing"));
}

#[tokio::test]
async fn a_file_in_use_is_refused_and_free_after_the_close() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path);
    assert!(matches!(refused(&path), OpenError::InUse { .. }));
    put(&*opened.store, "/a", "1").await;
    opened.close().await;
    Opened::at(&path).close().await;
}

#[tokio::test]
async fn a_creation_that_was_interrupted_begins_again() {
    let (_folder, path) = folder();
    Opened::at(&path).close().await;
    let len = fs::metadata(&path).unwrap().len();
    let mut header = fs::read(&path).unwrap();
    header.truncate(320);
    header[..9].fill(0);
    for header in [&header[..], &[]] {
        fs::write(&path, header).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(len).unwrap();
        drop(file);
        let opened = Opened::at(&path);
        assert_eq!(put(&*opened.store, "/a", "1").await, 2);
        opened.close().await;
    }
}

#[test]
fn a_missing_folder_is_named() {
    let (_folder, path) = folder();
    let path = path.join("deeper.db");
    fs::write(path.parent().unwrap(), b"").unwrap();
    let error = Embedded::open(&path, Clock::real()).unwrap_err();
    assert!(matches!(error, OpenError::Io { .. }), "{error}");
}

#[tokio::test]
async fn a_closed_store_refuses_writes_and_still_reads() {
    let (_folder, path) = folder();
    let opened = Opened::at(&path);
    put(&*opened.store, "/a", "1").await;
    let store = opened.store.clone();
    opened.close().await;
    assert!(matches!(
        store.compact(2).await,
        Err(BackendError::Unavailable(_))
    ));
    assert_eq!(all(&*store).await.len(), 1);
}
