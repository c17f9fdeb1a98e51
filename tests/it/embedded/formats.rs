//! Files of format 1, which are read and written on, and records with fields of later programs.

use std::path::Path;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use ringwatch::storage::backend::{Backend, KeyRange, LeaseId, RangeRequest};

use super::opened::Opened;
use super::requests::{all, delete, put, put_leased};

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("ringwatch.records");
const LEASES: TableDefinition<'_, i64, i64> = TableDefinition::new("ringwatch.leases");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("ringwatch.meta");

/// The lease of a file of format 1.
const LEASE: i64 = 77;

/// Returns the bytes of a put in format 1.
fn old_put(key: &str, create_revision: u64, version: u64, lease: i64, value: &str) -> Vec<u8> {
    let mut bytes = vec![1];
    old_key(&mut bytes, key);
    bytes.extend(create_revision.to_le_bytes());
    bytes.extend(version.to_le_bytes());
    bytes.extend(lease.to_le_bytes());
    bytes.extend(value.as_bytes());
    bytes
}

/// Returns the bytes of a deletion in format 1.
fn old_delete(keys: &[&str]) -> Vec<u8> {
    let mut bytes = vec![2];
    for key in keys {
        old_key(&mut bytes, key);
    }
    bytes
}

fn old_key(bytes: &mut Vec<u8>, key: &str) {
    bytes.extend(u32::try_from(key.len()).unwrap().to_le_bytes());
    bytes.extend(key.as_bytes());
}

/// Writes a file of format 1 that ends at revision 7.
fn write_old_file(path: &Path) {
    let database = Database::create(path).unwrap();
    let txn = database.begin_write().unwrap();
    {
        let mut records = txn.open_table(RECORDS).unwrap();
        for (revision, bytes) in [
            (2, old_put("/a", 2, 1, 0, "one")),
            (3, old_put("/a", 2, 2, 0, "two")),
            (4, old_put("/b", 4, 1, LEASE, "")),
            (5, old_put("/c", 5, 1, 0, &"x".repeat(10_000))),
            (6, old_put("/d", 6, 1, 0, "gone")),
            (7, old_delete(&["/c", "/d"])),
        ] {
            records.insert(revision, bytes.as_slice()).unwrap();
        }
        let mut leases = txn.open_table(LEASES).unwrap();
        leases.insert(LEASE, 3_600).unwrap();
        let mut meta = txn.open_table(META).unwrap();
        meta.insert("format", 1).unwrap();
        meta.insert("compacted", 3).unwrap();
    }
    txn.commit().unwrap();
}

/// Returns the format of a file that is not in use.
fn format_of(path: &Path) -> u64 {
    let database = Database::create(path).unwrap();
    let txn = database.begin_read().unwrap();
    let meta = txn.open_table(META).unwrap();
    meta.get("format").unwrap().expect("a format").value()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn a_file_of_format_1_is_read_with_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ringwatch.db");
    write_old_file(&path);
    let opened = Opened::at(&path);
    let store = &*opened.store;
    assert_eq!(all(store).await, pairs(&[("/a", "two"), ("/b", "")]));
    let everything = RangeRequest::all(KeyRange::prefix("/"));
    let response = store.range(everything).await.unwrap();
    assert_eq!(response.revision, 7);
    let (a, b) = (&response.kvs[0], &response.kvs[1]);
    assert_eq!((a.create_revision, a.mod_revision, a.version), (2, 3, 2));
    assert_eq!((b.lease, b.mod_revision), (Some(LeaseId(LEASE)), 4));
    let past = RangeRequest {
        revision: 6,
        ..RangeRequest::all(KeyRange::prefix("/"))
    };
    let past = store.range(past).await.unwrap();
    assert_eq!(past.kvs.len(), 4);
    assert_eq!(past.kvs[2].value.len(), 10_000);
    let lease = Some(LeaseId(LEASE));
    put_leased(store, "/e", "5", lease)
        .await
        .expect("the lease is there");
    opened.close().await;
}

#[tokio::test]
async fn the_first_write_gives_an_old_file_the_new_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ringwatch.db");
    write_old_file(&path);
    Opened::at(&path).close().await;
    assert_eq!(format_of(&path), 1, "opening it writes nothing");
    let opened = Opened::at(&path);
    assert_eq!(put(&*opened.store, "/a", "three").await, 8);
    assert_eq!(delete(&*opened.store, "/b").await, 9);
    opened.close().await;
    assert_eq!(format_of(&path), 2);
    let opened = Opened::at(&path);
    assert_eq!(all(&*opened.store).await, pairs(&[("/a", "three")]));
    // Records of both formats are removed alike.
    opened.store.compact(9).await.unwrap();
    opened.close().await;
    let opened = Opened::at(&path);
    assert_eq!(all(&*opened.store).await, pairs(&[("/a", "three")]));
    opened.close().await;
}

/// A later program may add fields to records of this format.
#[tokio::test]
async fn unknown_fields_of_records_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ringwatch.db");
    let opened = Opened::at(&path);
    put(&*opened.store, "/a", "1").await;
    opened.close().await;
    let database = Database::create(&path).unwrap();
    let txn = database.begin_write().unwrap();
    {
        let mut records = txn.open_table(RECORDS).unwrap();
        let mut bytes = records.get(2).unwrap().expect("a record").value().to_vec();
        // Field 100, with four bytes.
        bytes.extend(b"\xa2\x06\x04more");
        records.insert(2, bytes.as_slice()).unwrap();
    }
    txn.commit().unwrap();
    drop(database);
    let opened = Opened::at(&path);
    assert_eq!(all(&*opened.store).await, pairs(&[("/a", "1")]));
    opened.close().await;
}
