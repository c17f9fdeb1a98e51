//! The etcd3 store over every backend: each case runs over the memory backend and a real etcd.

mod feeds;
mod lists;
mod restarts;
mod updates;
mod watches;
mod writes;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use ringwatch::clock::Clock;
use ringwatch::meta::{Object, WatchEvent};
use ringwatch::storage::backend::embedded::Embedded;
use ringwatch::storage::backend::etcd::{Config as EtcdConfig, Etcd, TlsFiles};
use ringwatch::storage::backend::{Backend, Compare, Op, Txn};
use ringwatch::storage::etcd3::{Config, Store};
use ringwatch::storage::{
    Interface as _, NextContent, Rejection, StorageError, TryUpdate, WatchStream,
};
use ringwatch_testing::eventually::DEADLINE;
use serde_json::{Value, json};

use crate::support::etcd;

/// The list of all objects of the type.
const ALL: &str = "/configmaps/";

/// A store of config maps in a fresh backend.
struct Fixture {
    store: Store,
    backend: Arc<dyn Backend>,
    /// Ends with the case.
    etcd: Option<etcd::Etcd>,
}

impl Fixture {
    fn memory() -> Self {
        Self::over(Arc::new(Embedded::in_memory(Clock::real())), None)
    }

    /// `None` where there is no etcd.
    async fn etcd(test: &str) -> Option<Self> {
        let etcd = etcd::Etcd::start(test)?;
        let config = EtcdConfig::new(vec![etcd.endpoint()], TlsFiles::default());
        let backend = Etcd::connect(config, Clock::real()).await;
        let backend = Arc::new(backend.expect("a running etcd"));
        Some(Self::over(backend, Some(etcd)))
    }

    fn over(backend: Arc<dyn Backend>, etcd: Option<etcd::Etcd>) -> Self {
        let config = Config::new("/registry", "/configmaps", Clock::real());
        Self {
            store: Store::new(Arc::clone(&backend), config),
            backend,
            etcd,
        }
    }

    /// Creates `/configmaps/default/<name>` with a label.
    async fn create(&self, name: &str, app: &str) -> Arc<Object> {
        let created = self.store.create(&key(name), &map(name, app), None).await;
        created.expect("a new object")
    }

    /// Gives the object another label.
    async fn label(&self, name: &str, app: &str) -> Arc<Object> {
        let mut update = Become::new(map(name, app));
        let updated = self
            .store
            .guaranteed_update(&key(name), Default::default(), &mut update)
            .await;
        updated.expect("an object to update")
    }

    async fn delete(&self, name: &str) -> Arc<Object> {
        let deleted = self
            .store
            .delete(
                &key(name),
                Default::default(),
                &mut ringwatch::storage::NoCheck,
            )
            .await;
        deleted.expect("an object to delete")
    }

    /// Writes bytes past the store.
    async fn write_raw(&self, full_key: &str, value: &'static str) -> u64 {
        let txn = Txn {
            compare: Compare::ModRevision(full_key.to_owned(), 0),
            then: Op::Put {
                key: full_key.to_owned(),
                value: Bytes::from_static(value.as_bytes()),
                lease: None,
            },
            otherwise: None,
        };
        let written = self.backend.txn(txn).await.expect("a write");
        assert!(written.succeeded);
        written.revision
    }
}

fn key(name: &str) -> String {
    format!("/configmaps/default/{name}")
}

fn map(name: &str, app: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name,
        "namespace": "default", "uid": format!("uid-{name}"), "labels": {"app": app}}})
}

fn app(object: &Object) -> &str {
    object.attributes().labels().get("app").unwrap_or_default()
}

/// An update to one content, whatever there was, that counts its calls.
struct Become {
    object: Value,
    ttl: Option<u64>,
    calls: u32,
}

impl Become {
    fn new(object: Value) -> Self {
        Self {
            object,
            ttl: None,
            calls: 0,
        }
    }
}

#[async_trait]
impl TryUpdate for Become {
    async fn try_update(&mut self, _existing: Option<&Object>) -> Result<NextContent, Rejection> {
        self.calls += 1;
        Ok(NextContent {
            object: self.object.clone(),
            ttl: self.ttl,
        })
    }
}

/// Returns the next item of a watch, in one line: type, name, label, revision.
async fn next(watch: &mut WatchStream) -> String {
    match next_item(watch).await {
        Ok(WatchEvent::Added(object)) => line("ADDED", &object),
        Ok(WatchEvent::Modified(object)) => line("MODIFIED", &object),
        Ok(WatchEvent::Replaced { object, .. }) => line("REPLACED", &object),
        Ok(WatchEvent::Deleted(object)) => line("DELETED", &object),
        Ok(WatchEvent::Bookmark {
            revision,
            initial_events_end,
        }) => format!("BOOKMARK {revision} {initial_events_end}"),
        Err(error) => format!("ERROR {error}"),
    }
}

async fn next_item(watch: &mut WatchStream) -> Result<WatchEvent, StorageError> {
    let next = tokio::time::timeout(DEADLINE, watch.next()).await;
    next.expect("an item in time").expect("an item")
}

fn line(kind: &str, object: &Object) -> String {
    format!(
        "{kind} {} {} {}",
        object.name(),
        app(object),
        object.revision()
    )
}

/// Makes each case a test over every backend.
macro_rules! over_backends {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $case() {
                super::$case(crate::store::Fixture::memory()).await;
            })*
        }
        mod etcd {
            $(#[tokio::test]
            async fn $case() {
                let name = concat!(module_path!(), "::", stringify!($case));
                if let Some(fixture) = crate::store::Fixture::etcd(name).await {
                    super::$case(fixture).await;
                }
            })*
        }
    };
}
pub(crate) use over_backends;
