//! Watches that begin with the store's state and go on with the cache's events.
//!
//! If the feed may not come to the newest revision soon ([`crate::storage::ChangeSource::reaches_newest`]), a cache
//! does not know whether it has the newest state, but the store does. A list from there is complete up to its revision,
//! and of the events after that the cache misses none, whenever they come: so both together are one watch.

use futures::StreamExt;
use futures::stream;

use super::handle::Cacher;
use crate::meta::{ResourceVersion, VersionMatch, WatchEvent};
use crate::storage::{Interface, ListOptions, SelectionPredicate, StorageError, WatchStream};

/// Starts a watch with the state that the store lists. An error of that list is the only item.
///
/// # Errors
/// [`StorageError::NotReady`].
pub(super) async fn watch_from_store(
    cacher: &Cacher,
    store: &dyn Interface,
    key: &str,
    options: ListOptions,
) -> Result<WatchStream, StorageError> {
    cacher.check_ready()?;
    let version_match = options.resource_version.map(|_| VersionMatch::NotOlderThan);
    let state = ListOptions {
        version_match,
        send_initial_events: None,
        predicate: SelectionPredicate {
            allow_watch_bookmarks: false,
            // A part of the state must not pass for all of it.
            limit: 0,
            continue_token: String::new(),
            ..options.predicate.clone()
        },
        ..options.clone()
    };
    let state = match store.get_list(key, state).await {
        Ok(state) => state,
        Err(error @ StorageError::NotReady { .. }) => return Err(error),
        Err(error) => return Ok(WatchStream::new(stream::iter([Err(error)]))),
    };
    let revision = state.revision;
    let has_end = options.send_initial_events == Some(true);
    let end =
        (has_end && options.predicate.allow_watch_bookmarks).then_some(WatchEvent::Bookmark {
            revision,
            initial_events_end: true,
        });
    let after = ListOptions {
        resource_version: Some(ResourceVersion(revision)),
        version_match: None,
        send_initial_events: None,
        ..options
    };
    let events = cacher.start_watch(key, after).await?;
    let memory = state.memory;
    let objects = state.items.into_iter().map(move |object| {
        // The objects are counted until the last has been taken.
        let _counted = &memory;
        WatchEvent::Added(object)
    });
    let state = stream::iter(objects.chain(end).map(Ok));
    Ok(WatchStream::new(state.chain(events)))
}
