//! A type whose objects are collected, as the informer reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use ringwatch::clock::Clock;
use ringwatch::storage::{List, StorageError, WatchStream};
use ringwatch_apimachinery::Error;
use ringwatch_registry::{ListWatch, Store};

/// Time after which the objects of a type that could not be read are listed again.
const UNREADABLE_PERIOD: Duration = Duration::from_secs(30);

/// A type of objects that are collected. While they cannot be read, as when their conversion webhook is down, it counts
/// as one without objects, so that the others are collected nevertheless.
#[derive(Debug)]
pub(super) struct CollectedType {
    pub(super) store: Arc<Store>,
    is_unreadable: AtomicBool,
    clock: Clock,
}

impl CollectedType {
    pub(super) fn new(store: Arc<Store>, clock: &Clock) -> Self {
        let is_unreadable = AtomicBool::new(false);
        let clock = clock.clone();
        Self {
            store,
            is_unreadable,
            clock,
        }
    }

    /// Returns true if the objects of the type are not known.
    pub(super) fn is_unreadable(&self) -> bool {
        // Relaxed: the one task of the collector lists, follows and reads it.
        self.is_unreadable.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl ListWatch for CollectedType {
    async fn list_all(&self) -> Result<List, Error> {
        let listed = self.store.list_all().await;
        // A cache that fills is waited for.
        let is_unreadable = match &listed {
            Ok(_) | Err(Error::Storage(StorageError::NotReady { .. })) => false,
            Err(_) => self.store.resource().is_custom(),
        };
        // Relaxed: as in `is_unreadable`.
        self.is_unreadable.store(is_unreadable, Ordering::Relaxed);
        match listed {
            Err(error) if is_unreadable => {
                let resource = self.store.resource().qualified_name();
                tracing::warn!(%error, resource, "objects cannot be read and are not collected");
                Ok(List::default())
            }
            listed => listed,
        }
    }

    async fn watch_from(&self, revision: u64) -> Result<WatchStream, Error> {
        if !self.is_unreadable() {
            return self.store.watch_from(revision).await;
        }
        let clock = self.clock.clone();
        let end = async move { clock.sleep(UNREADABLE_PERIOD).await };
        Ok(WatchStream::new(
            end.into_stream().filter_map(async |()| None),
        ))
    }
}
