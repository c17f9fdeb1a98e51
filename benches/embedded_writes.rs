//! Durable writes of the embedded store a second, by 1, 64 and 512 writers at once, beside three floors of the same run
//! on the same disk: redb with one write in each transaction, redb with as many writes in each transaction as there are
//! writers, and a bare append with fdatasync.
//!
//! `cargo bench --bench embedded_writes` measures; `cargo test --bench embedded_writes` makes a few writes of each.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench is the composition root of what it measures, and reads the time"
)]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use redb::{Database, TableDefinition};
use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::{Backend, Compare, Op, Txn};
use tokio::runtime::Runtime;

/// The numbers of writers that write at the same time, each measured by itself.
const WRITERS: [u64; 3] = [1, 64, 512];
/// The number of writes that each writer makes in a round, where there are one, 64 and 512 of them.
const WRITES_EACH: [u64; 3] = [300, 60, 20];
/// The number of transactions or appends that a floor makes in a round.
const FLOOR_COMMITS: u64 = 300;
/// The number of rounds that are made; the table shows their median and range.
const ROUNDS: usize = 7;
/// The length of a written value in bytes.
const VALUE_BYTES: usize = 1_024;
/// redb's cache in bytes: as much as the embedded store gives it.
const CACHE_BYTES: usize = 8 << 20;

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

/// Writes a second, one number for each round.
#[derive(Debug, Default)]
struct Rates(Vec<f64>);

impl Rates {
    fn add(&mut self, writes: u64, began: Instant) {
        self.0.push(writes as f64 / began.elapsed().as_secs_f64());
        self.0.sort_by(f64::total_cmp);
    }

    fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }
}

impl std::fmt::Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (least, most) = (self.0[0], self.0[self.0.len() - 1]);
        write!(f, "{:.0} ({least:.0} .. {most:.0})", self.median())
    }
}

/// The rates of the store and of its floors with one number of writers.
#[derive(Debug, Default)]
struct Row {
    embedded: Rates,
    redb_alone: Rates,
    redb_grouped: Rates,
    append: Rates,
}

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let rounds = if measured { ROUNDS } else { 1 };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let runtime = Runtime::new().unwrap();
    let mut rows = WRITERS.map(|_| Row::default());
    for round in 0..rounds {
        for (at, row) in rows.iter_mut().enumerate() {
            let (writes_each, commits) = match measured {
                true => (WRITES_EACH[at], FLOOR_COMMITS),
                false => (1, 2),
            };
            let path = folder.path().join(format!("{round}-{at}"));
            std::fs::create_dir(&path).unwrap();
            measure_embedded(&runtime, &path, WRITERS[at], writes_each, &mut row.embedded);
            measure_redb(&path.join("alone"), 1, commits, &mut row.redb_alone);
            let grouped = &mut row.redb_grouped;
            measure_redb(
                &path.join("grouped"),
                WRITERS[at],
                commits.min(writes_each),
                grouped,
            );
            measure_append(&path.join("append"), commits, &mut row.append);
            std::fs::remove_dir_all(&path).unwrap();
        }
    }
    print_table(&rows);
}

/// Measures the embedded store: each writer makes one write after the other.
fn measure_embedded(
    runtime: &Runtime,
    folder: &Path,
    writers: u64,
    writes_each: u64,
    rates: &mut Rates,
) {
    let (store, commits) = Embedded::open(&folder.join("embedded"), Clock::real()).unwrap();
    let committing = std::thread::spawn(move || commits.run());
    let store = Arc::new(store);
    // The first write makes the tables' pages.
    runtime.block_on(put(&store, u64::MAX));
    let began = Instant::now();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..writers)
            .map(|writer| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    for number in 0..writes_each {
                        put(&store, writer * writes_each + number).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    rates.add(writers * writes_each, began);
    drop(store);
    committing.join().unwrap();
}

async fn put(store: &Embedded, number: u64) {
    let key = format!("/registry/configmaps/default/{number}");
    let txn = Txn {
        compare: Compare::ModRevision(key.clone(), 0),
        then: Op::Put {
            key,
            value: Bytes::from(vec![b'x'; VALUE_BYTES]),
            lease: None,
        },
        otherwise: None,
    };
    assert!(store.txn(txn).await.unwrap().succeeded);
}

/// Measures redb with so many writes in each transaction, which ends with fsync.
fn measure_redb(path: &Path, writes_each: u64, commits: u64, rates: &mut Rates) {
    let database = Database::builder()
        .set_cache_size(CACHE_BYTES)
        .create(path)
        .unwrap();
    let value = vec![b'x'; VALUE_BYTES];
    let commit = |first: u64| {
        let txn = database.begin_write().unwrap();
        {
            let mut table = txn.open_table(RECORDS).unwrap();
            for number in first..first + writes_each {
                table.insert(number, value.as_slice()).unwrap();
            }
        }
        txn.commit().unwrap();
    };
    commit(0);
    let began = Instant::now();
    for at in 1..=commits {
        commit(at * writes_each);
    }
    rates.add(commits * writes_each, began);
}

/// Measures a file to which each write is appended and then made durable by fdatasync.
fn measure_append(path: &Path, writes: u64, rates: &mut Rates) {
    let mut file = File::create(path).unwrap();
    let value = vec![b'x'; VALUE_BYTES];
    file.write_all(&value).unwrap();
    file.sync_data().unwrap();
    let began = Instant::now();
    for _ in 0..writes {
        file.write_all(&value).unwrap();
        file.sync_data().unwrap();
    }
    rates.add(writes, began);
}

fn print_table(rows: &[Row]) {
    println!(
        "Writes of 1 KiB a second, median (range). The ratio is the embedded store over a floor: more is better."
    );
    println!(
        "| writers | embedded | redb, one a transaction | ratio | redb, all writers in one transaction | ratio | append and fdatasync | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (row, writers) in rows.iter().zip(WRITERS) {
        let ratio = |floor: &Rates| row.embedded.median() / floor.median();
        println!(
            "| {writers} | {} | {} | {:.2} | {} | {:.2} | {} | {:.2} |",
            row.embedded,
            row.redb_alone,
            ratio(&row.redb_alone),
            row.redb_grouped,
            ratio(&row.redb_grouped),
            row.append,
            ratio(&row.append),
        );
    }
}
