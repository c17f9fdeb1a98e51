//! The informer: lists what stores have and then watches them from the revisions of the lists, for whatever the server
//! keeps in memory by what it has stored itself. It is client-go's reflector without a client in between.
//!
//! ```text
//!          +-----------------------------------------------------------------+
//!          v                                                                 |
//!   list and watch each store --> Listed { objects, changes } --> a watch ends or fails
//!          |                                                                 |
//!          +--> it cannot be read -------------------> pause_after <---------+
//! ```
//!
//! Its users rely on this:
//!
//! - A change that is not in the listed objects is in the changes, and none is in both: each watch begins at the
//!   revision of its list.
//! - Changes of one store come in their order. Those of several stores come in any.
//! - Once any of the watches has ended, nothing comes from the others either, and everything is listed again. What was
//!   received before that is handed out first.
//! - While the stores cannot be read, no change is reported: the last state of the handler holds.
//! - An object that cannot be decoded is logged and left out of the list.
//! - Memory is bounded by the objects themselves: a watch is only read when [`Changes::next`] is, up to [`CHANGES_MAX`]
//!   changes at a time.
//!
//! A user that does nothing besides implements [`Handler`] and calls [`Informer::run`]. One that also waits for
//! something else calls [`Informer::list`], selects over [`Changes::next`], and [`Informer::pause_after`] when that has
//! ended.

#[cfg(test)]
mod tests;

use std::fmt::{self, Debug};
use std::future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream, ReadyChunks, SelectAll};
use ringwatch::clock::Clock;
use ringwatch::meta::{Object, ResourceVersion, WatchEvent};
use ringwatch::storage::{List, ListOptions, StorageError, WatchStream};
use ringwatch_apimachinery::Error;

use crate::Store;

/// Time after the end of a watch, or a failed list, until everything is listed again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// The same while a cache is being filled, as it is when the server starts.
const FILLING_PERIOD: Duration = Duration::from_millis(20);

/// Maximum number of changes that are handed out at a time.
pub const CHANGES_MAX: usize = 256;

/// Objects of one type that can be listed and watched.
#[async_trait]
pub trait ListWatch: Debug + Send + Sync {
    /// Lists all objects of the store.
    ///
    /// # Errors
    /// An error of the store if they cannot be read.
    async fn list_all(&self) -> Result<List, Error>;

    /// Watches all objects, from after a revision on.
    ///
    /// # Errors
    /// An error of the store if the watch cannot begin.
    async fn watch_from(&self, revision: u64) -> Result<WatchStream, Error>;
}

#[async_trait]
impl ListWatch for Store {
    /// Lists the objects of all namespaces that can be decoded, and names the others.
    async fn list_all(&self) -> Result<List, Error> {
        let options = ListOptions {
            skip_corrupt: true,
            ..ListOptions::default()
        };
        self.list("", options).await
    }

    async fn watch_from(&self, revision: u64) -> Result<WatchStream, Error> {
        let options = ListOptions {
            resource_version: Some(ResourceVersion(revision)),
            ..ListOptions::default()
        };
        self.watch("", options).await
    }
}

/// A change of an object.
#[derive(Clone, Debug)]
pub enum InformerChange {
    /// The object was created or updated, and is this now.
    Upserted(Arc<Object>),
    /// The object was deleted, and was this before.
    Deleted(Arc<Object>),
}

/// Follows the objects of stores. `S` names the store that a change comes from.
#[derive(Debug)]
pub struct Informer<'a, S> {
    what: &'static str,
    sources: Vec<(S, &'a dyn ListWatch)>,
    clock: Clock,
}

/// The objects of all stores, and what changes after that.
pub struct InformerList<'a, S> {
    /// The objects, store by store in the informer's order, in key order within each.
    pub objects: Vec<(S, Arc<Object>)>,
    /// The keys of objects that cannot be decoded.
    pub corrupt: Vec<(S, String)>,
    /// The changes after the listed state, in the order of their revisions.
    pub changes: Changes<'a, S>,
}

/// The changes of several stores, as one stream that ends with the first of their watches.
pub struct Changes<'a, S> {
    watches: InformerWatches<'a, S>,
    /// The error that has ended the watches, until it is returned.
    error: Option<Error>,
}

/// The events of all watches, those that are there at the same time together; `None` when one has ended.
type InformerWatches<'a, S> = ReadyChunks<SelectAll<BoxStream<'a, (S, Option<InformerEvent>)>>>;
type InformerEvent = Result<WatchEvent, StorageError>;

/// Receives the objects of stores and their changes.
pub trait Handler<S> {
    /// Takes all objects there are, in place of what it knew before.
    fn replace(&mut self, objects: Vec<(S, Arc<Object>)>);

    /// Applies one change of an object of a source.
    fn apply(&mut self, source: S, change: InformerChange);

    /// Makes use of what it knows now: after all objects were replaced, and after each chunk of changes.
    fn publish(&mut self);
}

impl<'a, S: Copy + Send + Sync + 'a> Informer<'a, S> {
    /// Makes an informer of stores. In messages their objects are called `what`.
    pub fn new(
        what: &'static str,
        sources: impl IntoIterator<Item = (S, &'a dyn ListWatch)>,
        clock: Clock,
    ) -> Self {
        Self {
            what,
            sources: sources.into_iter().collect(),
            clock,
        }
    }

    /// Keeps a handler up to date until it is dropped.
    pub async fn run(&self, handler: &mut (impl Handler<S> + Send)) {
        loop {
            let ended = self.follow(handler).await;
            self.pause_after(ended).await;
        }
    }

    async fn follow(&self, handler: &mut (impl Handler<S> + Send)) -> Result<(), Error> {
        let InformerList {
            objects,
            mut changes,
            ..
        } = self.list().await?;
        handler.replace(objects);
        handler.publish();
        while let Some(chunk) = changes.next().await? {
            for (source, change) in chunk {
                handler.apply(source, change);
            }
            handler.publish();
        }
        Ok(())
    }

    /// Lists all objects, and begins to watch them from there.
    ///
    /// # Errors
    /// One of the stores cannot be read. The caller does [`Self::pause_after`] that and tries again.
    pub async fn list(&self) -> Result<InformerList<'a, S>, Error> {
        let (mut objects, mut corrupt, mut changes) = (Vec::new(), Vec::new(), Changes::default());
        for (source, store) in &self.sources {
            let list = store.list_all().await?;
            for (key, error) in list.corrupt {
                let what = self.what;
                tracing::warn!(what, key, error, "an object cannot be read and is ignored");
                corrupt.push((*source, key));
            }
            changes.push(*source, store.watch_from(list.revision).await?);
            objects.extend(list.items.into_iter().map(|object| (*source, object)));
        }
        Ok(InformerList {
            objects,
            corrupt,
            changes,
        })
    }

    /// Logs how following the stores ended, and waits until they are to be listed again.
    pub async fn pause_after(&self, ended: Result<(), Error>) {
        let what = self.what;
        let pause = match ended {
            Ok(()) => {
                tracing::debug!(what, "a watch ended");
                RETRY_PERIOD
            }
            Err(Error::Storage(StorageError::NotReady { .. })) => FILLING_PERIOD,
            Err(error) => {
                tracing::warn!(%error, "cannot watch {what}");
                RETRY_PERIOD
            }
        };
        self.clock.sleep(pause).await;
    }
}

impl<'a, S: Copy + Send + 'a> Changes<'a, S> {
    /// Follows another store too, from now on: what it has already is not listed.
    ///
    /// # Errors
    /// An error of the store if it cannot be read.
    pub async fn add(&mut self, source: S, store: &Store) -> Result<(), Error> {
        let mut one = ListOptions::default();
        one.predicate.limit = 1;
        let now = store.list("", one).await?.revision;
        self.push(source, store.watch_from(now).await?);
        Ok(())
    }

    fn push(&mut self, source: S, watch: WatchStream) {
        let end = stream::once(future::ready(None));
        let watch = watch.map(Some).chain(end);
        let watch = watch.map(move |event| (source, event)).boxed();
        self.watches.get_mut().push(watch);
    }

    /// Waits for changes, of which it returns those that are there, at most [`CHANGES_MAX`]; `None` when a watch has
    /// ended. Dropping the future loses nothing.
    ///
    /// # Errors
    /// The error of the watch that has failed.
    pub async fn next(&mut self) -> Result<Option<Vec<(S, InformerChange)>>, Error> {
        while let Some(events) = self.watches.next().await {
            let mut changes = Vec::with_capacity(events.len());
            for (source, event) in events {
                let change = match event {
                    Some(Ok(
                        WatchEvent::Added(object)
                        | WatchEvent::Modified(object)
                        | WatchEvent::Replaced { object, .. },
                    )) => InformerChange::Upserted(object),
                    Some(Ok(WatchEvent::Deleted(object))) => InformerChange::Deleted(object),
                    Some(Ok(WatchEvent::Bookmark { .. })) => continue,
                    Some(Err(error)) => {
                        *self = Self::ended(Some(Error::Storage(error)));
                        break;
                    }
                    None => {
                        *self = Self::ended(None);
                        break;
                    }
                };
                changes.push((source, change));
            }
            if !changes.is_empty() {
                return Ok(Some(changes));
            }
        }
        self.error.take().map_or(Ok(None), Err)
    }

    /// Changes of which no more come.
    fn ended(error: Option<Error>) -> Self {
        Self {
            error,
            ..Self::default()
        }
    }
}

impl<'a, S: 'a> Default for Changes<'a, S> {
    fn default() -> Self {
        Self {
            watches: SelectAll::new().ready_chunks(CHANGES_MAX),
            error: None,
        }
    }
}

impl<S: Debug> Debug for InformerList<'_, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Listed")
            .field("objects", &self.objects.len())
            .field("corrupt", &self.corrupt)
            .finish_non_exhaustive()
    }
}

impl<S> Debug for Changes<'_, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Changes")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}
