//! Keeps what is made of stored objects as they say, by watches of their caches, so that no request reads the
//! store; and what comes after a cache has been followed to an end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::SelectAll;
use ringwatch::clock::Clock;
use ringwatch::meta::{Object, ResourceVersion, WatchEvent};
use ringwatch::storage::{ListOptions, StorageError};
use ringwatch_admission::Followed;
use ringwatch_apimachinery::Error;
use ringwatch_registry::Store;

/// How long after a watch has ended, or could not begin, everything is listed again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// The same while the cache is being filled, as it is when the server starts.
const FILLING_PERIOD: Duration = Duration::from_millis(20);

/// How many changes are handled at a time.
const CHANGES_MAX: usize = 256;

/// Says how following `what` ended, and after how long it is to be begun again.
pub fn pause_after(what: &str, followed: Result<(), Error>) -> Duration {
    match followed {
        Ok(()) => {
            tracing::debug!(what, "a watch ended");
            RETRY_PERIOD
        }
        Err(Error::Storage(StorageError::NotReady { .. })) => FILLING_PERIOD,
        Err(error) => {
            tracing::warn!(%error, "cannot watch {what}");
            RETRY_PERIOD
        }
    }
}

/// Follows the objects of some types.
#[derive(Debug)]
pub struct Following<T> {
    /// The name of the objects, in messages.
    pub what: &'static str,
    /// Where they are.
    pub stores: Vec<Arc<Store>>,
    /// Parses an object.
    pub read: fn(&serde_json::Value) -> Result<T, String>,
    /// Where it is put, in the order of types and names.
    pub into: Arc<Followed<T>>,
    /// The time.
    pub clock: Clock,
}

/// Objects by the place of their store, namespace and name.
type Filed<T> = BTreeMap<(usize, String, String), Arc<T>>;

impl<T: Send + Sync> Following<T> {
    /// Follows the objects until it is dropped. What held last holds while they cannot be read.
    pub async fn run(self) {
        loop {
            let pause = pause_after(self.what, self.follow().await);
            self.clock.sleep(pause).await;
        }
    }

    /// Lists everything and follows its changes until a watch ends.
    async fn follow(&self) -> Result<(), Error> {
        let mut filed = Filed::new();
        let mut changes = SelectAll::new();
        for (place, store) in self.stores.iter().enumerate() {
            let options = ListOptions {
                skip_corrupt: true,
                ..ListOptions::default()
            };
            let list = store.list("", options).await?;
            for (key, error) in &list.corrupt {
                tracing::warn!(key, error, "cannot be read and is ignored");
            }
            for object in &list.items {
                self.file(&mut filed, place, object);
            }
            let options = ListOptions {
                resource_version: Some(ResourceVersion(list.revision)),
                ..ListOptions::default()
            };
            let watch = store.watch("", options).await?;
            let ended = futures::stream::once(std::future::ready(None));
            let watch = watch.map(Some).chain(ended);
            changes.push(watch.map(move |change| (place, change)).boxed());
        }
        self.publish(&filed);
        let mut changes = changes.ready_chunks(CHANGES_MAX);
        while let Some(chunk) = changes.next().await {
            for (place, change) in chunk {
                let Some(change) = change else { return Ok(()) };
                match change.map_err(Error::Storage)? {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        self.file(&mut filed, place, &object);
                    }
                    WatchEvent::Deleted(object) => drop(filed.remove(&key(place, &object))),
                    WatchEvent::Bookmark { .. } => {}
                }
            }
            self.publish(&filed);
        }
        Ok(())
    }

    /// Takes an object as it is now. One that cannot be read does not count.
    fn file(&self, filed: &mut Filed<T>, place: usize, object: &Object) {
        let value = self.stores[place].served_value(object);
        let read = value
            .map_err(|error| error.to_string())
            .and_then(|value| (self.read)(&value));
        match read {
            Ok(read) => drop(filed.insert(key(place, object), Arc::new(read))),
            Err(error) => {
                let (what, name) = (self.what, object.name());
                tracing::warn!(what, name, error, "an object cannot be read and is ignored");
                filed.remove(&key(place, object));
            }
        }
    }

    fn publish(&self, filed: &Filed<T>) {
        self.into.set(filed.values().cloned().collect());
    }
}

fn key(place: usize, object: &Object) -> (usize, String, String) {
    (
        place,
        object.namespace().to_owned(),
        object.name().to_owned(),
    )
}
