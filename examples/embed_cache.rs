//! The watch cache over a store of one's own, with 10,000 watchers: `cargo run --example embed_cache`.
//!
//! The store has one object, a counter, whose value is its revision.
#![allow(clippy::disallowed_methods, reason = "a program may spawn tasks")]

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::cacher::{CacheMetrics, Feed, TypeConfig};
use ringwatch::storage::{Change, ChangeBatch, ChangePage, ChangeSource, ChangeStream};
use ringwatch::storage::{GetOptions, ListOptions, RawObject, StorageError};
use tokio::sync::watch;

const KEY: &str = "/counters/only";
const WATCHERS: usize = 10_000;
const EVENTS: u64 = 10;

#[derive(Debug)]
struct Counter(watch::Sender<u64>);

fn object(count: u64) -> RawObject {
    let metadata = r#""kind":"Counter","apiVersion":"example.com/v1","metadata":{"name":"only"}"#;
    RawObject::new(KEY, format!(r#"{{{metadata},"count":{count}}}"#), count)
}

#[async_trait]
impl ChangeSource for Counter {
    async fn current_revision(&self) -> Result<u64, StorageError> {
        Ok(*self.0.borrow())
    }

    // The cache lists the objects at a revision, here in one page ...
    async fn page(
        &self,
        _prefix: &str,
        _after: Option<&str>,
        revision: u64,
        _limit: u32,
    ) -> Result<ChangePage, StorageError> {
        let newest = *self.0.borrow();
        let revision = if revision == 0 { newest } else { revision };
        Ok(ChangePage::last(revision, vec![object(revision)]))
    }

    // ... and follows all changes after it.
    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError> {
        let start = (revision, self.0.subscribe());
        let batches = stream::unfold(start, |(last, mut counter)| async move {
            let revision = *counter.wait_for(|it| *it > last).await.ok()?;
            let changes = (last + 1..=revision).map(|count| Change::put(object(count), false));
            let changes = changes.collect();
            Some((Ok(ChangeBatch { changes, revision }), (revision, counter)))
        });
        Ok(batches.boxed())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let counter = Arc::new(Counter(watch::Sender::new(1)));
    let source = Arc::clone(&counter);
    let (clock, metrics) = (Clock::real(), CacheMetrics::default());
    let (feed, reflector) = Feed::new(source, clock, metrics, Ledger::unlimited());
    tokio::spawn(reflector.run(std::future::pending()));
    let counters = feed.add_type(TypeConfig::new("example.com", "counters"));
    counters.ready().await?;

    let mut watches = Vec::new();
    for _ in 0..WATCHERS {
        watches.push(counters.watch(KEY, ListOptions::default()).await?);
    }
    for _ in 0..EVENTS {
        counter.0.send_modify(|count| *count += 1);
    }
    let mut delivered = 0;
    for mut watch in watches {
        // The state with which it begins, and each change.
        for _ in 0..=EVENTS {
            watch.next().await.ok_or("a watch has ended")??;
            delivered += 1;
        }
    }
    let newest = counters.get(KEY, GetOptions::default()).await?;
    println!(
        "{WATCHERS} watchers were delivered {delivered} events, up to revision {}",
        newest.revision()
    );
    Ok(())
}
