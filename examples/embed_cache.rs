//! The watch cache over a change source of one's own, with 10,000 watchers: `cargo run --example embed_cache`.
//!
//! The source counts: its only object is a counter, whose value is the revision. So every past state can be computed,
//! and a stream can follow it from any revision.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own, which spawns what the engine gives it to run"
)]

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig};
use ringwatch::storage::{
    Change, ChangeBatch, ChangeKind, ChangePage, ChangeSource, ChangeStream, Interface,
    ListOptions, RawObject, StorageError, etcd3,
};
use tokio::sync::watch;

const KEY: &str = "/counters/only";
const WATCHERS: usize = 10_000;
const EVENTS: u64 = 10;

/// The counter, whose revision is its value.
#[derive(Debug)]
struct Counter(watch::Sender<u64>);

fn object(revision: u64) -> RawObject {
    let value = format!(
        r#"{{"kind":"Counter","apiVersion":"example.com/v1","metadata":{{"name":"only"}},"value":{revision}}}"#
    );
    let (key, value) = (KEY.to_owned(), value.into());
    RawObject {
        key,
        value,
        revision,
    }
}

#[async_trait]
impl ChangeSource for Counter {
    async fn page(
        &self,
        prefix: &str,
        _after: Option<&str>,
        revision: u64,
        _limit: u32,
    ) -> Result<ChangePage, StorageError> {
        let newest = *self.0.borrow();
        let revision = if revision == 0 { newest } else { revision };
        let items = KEY.starts_with(prefix).then(|| object(revision));
        Ok(ChangePage {
            revision,
            items: items.into_iter().collect(),
            more: false,
        })
    }

    async fn follow(&self, revision: u64) -> Result<ChangeStream, StorageError> {
        let position = (revision, self.0.subscribe());
        let batches = stream::unfold(position, |(position, mut counter)| async move {
            let newest = *counter.wait_for(|it| *it > position).await.ok()?;
            let changes = (position + 1..=newest).map(|revision| Change {
                key: KEY.to_owned(),
                revision,
                kind: ChangeKind::Put {
                    value: object(revision).value,
                    created: false,
                },
            });
            let batch = ChangeBatch {
                changes: changes.collect(),
                revision: newest,
            };
            Some((Ok(batch), (newest, counter)))
        });
        Ok(batches.boxed())
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        Ok(())
    }

    async fn current_revision(&self) -> Result<u64, StorageError> {
        Ok(*self.0.borrow())
    }

    async fn oldest_revision(&self) -> Result<u64, StorageError> {
        Ok(1)
    }

    async fn has_written(&self, key: &str, _revision: u64) -> Result<bool, StorageError> {
        Ok(key == KEY)
    }

    fn progress_is_trusted(&self) -> bool {
        true
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let clock = Clock::real();
    let counter = Arc::new(Counter(watch::Sender::new(1)));
    let source = Arc::clone(&counter);
    let (feed, reflector) = Feed::new(
        source,
        clock.clone(),
        CacheMetrics::default(),
        Ledger::unlimited(),
    );
    let reflecting = tokio::spawn(reflector.run(std::future::pending()));
    let cacher = feed.add_type(TypeConfig::new("example.com", "counters"));
    cacher.ready().await?;
    // What the cache cannot answer goes to a store; here there is none beside the source, so it is an empty one.
    let store = etcd3::Store::new(
        Arc::new(Embedded::in_memory(clock.clone())),
        etcd3::Config::new("/registry", "/counters", clock),
    );
    let counters = CacheDelegator::new(cacher, Arc::new(store));
    let mut watches = Vec::new();
    for _ in 0..WATCHERS {
        let options = ListOptions {
            recursive: true,
            resource_version: Some(ResourceVersion(1)),
            ..ListOptions::default()
        };
        watches.push(counters.watch("/counters/", options).await?);
    }
    for _ in 0..EVENTS {
        counter.0.send_modify(|value| *value += 1);
    }
    let mut delivered = 0;
    for mut watch in watches {
        for _ in 0..EVENTS {
            watch.next().await.ok_or("a watch has ended")??;
            delivered += 1;
        }
    }
    println!("{WATCHERS} watchers were delivered {delivered} events");
    reflecting.abort();
    Ok(())
}
