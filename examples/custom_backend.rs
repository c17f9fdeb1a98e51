//! A backend of one's own under the store and the watch cache: `cargo run --example custom_backend`.
//!
//! The backend is a log: every write is appended, a read replays it, a watch follows it. It is as short as a backend
//! can be, not fast. `ringwatch::storage::backend` says what a backend has to promise.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own, which spawns what the engine gives it to run"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::backend::{
    Backend, BackendError, Compare, Event, EventKind, KeyRange, KeyValue, LeaseId, Op,
    RangeRequest, RangeResponse, Txn, TxnResponse, WatchRequest, WatchResponse, WatchResponses,
};
use ringwatch::storage::cacher::{CacheDelegator, CacheMetrics, Feed, TypeConfig};
use ringwatch::storage::{Interface, ListOptions, etcd3};
use serde_json::json;
use tokio::sync::watch;

/// All writes in order. The place of a write plus two is its revision, since a store begins at revision 1, as etcd
/// does.
#[derive(Debug)]
struct Log {
    events: Arc<Mutex<Vec<Event>>>,
    /// The newest revision.
    revision: watch::Sender<u64>,
}

impl Log {
    fn new() -> Self {
        Self {
            events: Arc::default(),
            revision: watch::Sender::new(1),
        }
    }

    /// Returns the state at a revision.
    fn state(events: &[Event], revision: u64) -> BTreeMap<&str, &KeyValue> {
        let mut state = BTreeMap::new();
        for event in events
            .iter()
            .take_while(|it| it.kv.mod_revision <= revision)
        {
            match event.kind {
                EventKind::Put => state.insert(event.kv.key.as_str(), &event.kv),
                EventKind::Delete => state.remove(event.kv.key.as_str()),
            };
        }
        state
    }

    /// Appends a write of a key; without a value it is deleted.
    fn append(&self, events: &mut Vec<Event>, key: &str, value: Option<Bytes>) -> u64 {
        let revision = events.len() as u64 + 2;
        let before = Self::state(events, revision).remove(key).cloned();
        let (created, version) = before
            .as_ref()
            .map_or((revision, 0), |it| (it.create_revision, it.version));
        events.push(Event {
            kind: if value.is_some() {
                EventKind::Put
            } else {
                EventKind::Delete
            },
            kv: KeyValue {
                key: key.to_owned(),
                value: value.unwrap_or_default(),
                create_revision: created,
                mod_revision: revision,
                version: version + 1,
                lease: None,
            },
            previous: before,
        });
        self.revision.send_replace(revision);
        revision
    }
}

fn holds(range: &KeyRange, key: &str) -> bool {
    match range {
        KeyRange::Key(only) => only == key,
        KeyRange::Span(from, to) => from.as_str() <= key && key < to.as_str(),
    }
}

#[async_trait]
impl Backend for Log {
    async fn range(&self, request: RangeRequest) -> Result<RangeResponse, BackendError> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let current = *self.revision.borrow();
        if request.revision > current {
            return Err(BackendError::FutureRevision { current });
        }
        let at = match request.revision {
            0 => current,
            revision => revision,
        };
        let all = Self::state(&events, at).into_iter();
        let all: Vec<_> = all.filter(|(key, _)| holds(&request.range, key)).collect();
        let count = all.len() as u64;
        let limit = match request.limit {
            0 => count,
            limit => limit,
        };
        let kvs = all.into_iter().zip(0..limit);
        Ok(RangeResponse {
            revision: current,
            kvs: kvs.map(|((_, kv), _)| kv.clone()).collect(),
            more: count > limit,
            count,
        })
    }

    async fn txn(&self, txn: Txn) -> Result<TxnResponse, BackendError> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let state = Self::state(&events, u64::MAX);
        let succeeded = match &txn.compare {
            Compare::ModRevision(key, revision) => {
                state.get(key.as_str()).map_or(0, |it| it.mod_revision) == *revision
            }
            Compare::Version(key, version) => {
                state.get(key.as_str()).map_or(0, |it| it.version) == *version
            }
        };
        let op = if succeeded {
            Some(txn.then)
        } else {
            txn.otherwise
        };
        let mut revision = *self.revision.borrow();
        let mut found = None;
        match op {
            Some(Op::Put { key, value, .. }) => {
                revision = self.append(&mut events, &key, Some(value));
            }
            Some(Op::Delete { key }) if state.contains_key(key.as_str()) => {
                revision = self.append(&mut events, &key, None);
            }
            Some(Op::Get { key }) => found = state.get(key.as_str()).map(|it| (*it).clone()),
            Some(Op::Delete { .. }) | None => {}
        }
        Ok(TxnResponse {
            revision,
            succeeded,
            found,
        })
    }

    async fn watch(&self, request: WatchRequest) -> Result<WatchResponses, BackendError> {
        let mut revision = self.revision.subscribe();
        let from = match request.start_revision {
            0 => *revision.borrow_and_update() + 1,
            from => from,
        };
        let events = Arc::clone(&self.events);
        let position = (from, revision, events, request.range);
        let responses =
            stream::unfold(position, |(from, mut revision, events, range)| async move {
                let newest = *revision.wait_for(|it| *it >= from).await.ok()?;
                let changed = {
                    let events = events.lock().unwrap_or_else(PoisonError::into_inner);
                    let new = events.iter().filter(|it| {
                        (from..=newest).contains(&it.kv.mod_revision) && holds(&range, &it.kv.key)
                    });
                    new.cloned().collect()
                };
                let response = WatchResponse {
                    revision: newest,
                    events: changed,
                };
                Some((Ok(response), (newest + 1, revision, events, range)))
            });
        Ok(responses.boxed())
    }

    async fn request_progress(&self) -> Result<(), BackendError> {
        Ok(())
    }

    fn progress_is_trusted(&self) -> bool {
        false
    }

    async fn grant_lease(&self, _ttl_seconds: i64) -> Result<LeaseId, BackendError> {
        Err(BackendError::Other("this backend has no leases".to_owned()))
    }

    async fn compact(&self, _revision: u64) -> Result<(), BackendError> {
        Ok(())
    }

    async fn oldest_revision(&self) -> Result<u64, BackendError> {
        Ok(1)
    }

    async fn size_bytes(&self) -> Result<u64, BackendError> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(events.iter().map(|it| it.kv.value.len() as u64).sum())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (clock, backend) = (Clock::real(), Arc::new(Log::new()));
    let changes = Arc::new(etcd3::Changes::new(Arc::clone(&backend) as _, "/registry"));
    let (feed, reflector) = Feed::new(
        changes,
        clock.clone(),
        CacheMetrics::default(),
        Ledger::unlimited(),
    );
    let reflecting = tokio::spawn(reflector.run(std::future::pending()));
    let cacher = feed.add_type(TypeConfig::new("", "configmaps"));
    cacher.ready().await?;
    let store = etcd3::Store::new(
        backend,
        etcd3::Config::new("/registry", "/configmaps", clock),
    );
    let config_maps = CacheDelegator::new(cacher, Arc::new(store));
    let everything = ListOptions {
        recursive: true,
        ..ListOptions::default()
    };
    let mut watch = config_maps
        .watch("/configmaps/", everything.clone())
        .await?;
    let hello = json!({"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": "hello", "namespace": "default"}, "data": {"greeting": "world"}});
    config_maps
        .create("/configmaps/default/hello", &hello, None)
        .await?;
    let event = watch.next().await.ok_or("the watch has ended")??;
    println!("watched: {event:?}");
    let list = config_maps.get_list("/configmaps/", everything).await?;
    println!(
        "listed: {} object at revision {}",
        list.items.len(),
        list.revision
    );
    reflecting.abort();
    Ok(())
}
