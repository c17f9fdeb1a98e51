//! A watch that reads from the backend, without a cache.
//!
//! It is a stream that does its work when polled, in phases: the initial state in pages, the bookmark after it, then
//! the changes after its revision. The first step is taken before the stream is returned, so that the watch begins at
//! the time of the request and not of the first poll.

use std::collections::VecDeque;
use std::iter;
use std::time::Duration;

use futures::stream::{self, StreamExt};

use super::decode::ValueReader;
use super::event::convert;
use super::list;
use super::store::Store;
use crate::meta::{ResourceVersion, WatchEvent};
use crate::storage::backend::{
    BackendError, KeyRange, WatchRequest, WatchResponse, WatchResponses,
};
use crate::storage::{ListOptions, StorageError, WatchStream};

/// Maximum number of times in a row that a broken stream is opened again before the watch ends with an error.
const REOPEN_ATTEMPTS_MAX: u32 = 10;
/// The time to wait before a broken stream is opened again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// The state of a watch.
struct Watcher {
    store: Store,
    options: ListOptions,
    /// The full key, or the prefix of all keys.
    prefix: String,
    /// The revision up to which everything is in `ready` or has been returned.
    revision: u64,
    /// The items to return next: at most a page of the initial state, or the events of one response.
    ready: VecDeque<Result<WatchEvent, StorageError>>,
    phase: StreamPhase,
}

enum StreamPhase {
    /// Read the initial state, from this key on if not from the beginning.
    Sync { from: Option<String> },
    /// Open the backend's watch after `revision`, which has failed so often in a row.
    Open { failures: u32 },
    /// Return the changes of the backend.
    Follow(WatchResponses),
    /// The watch has ended.
    Ended,
}

/// See [`crate::storage::Interface::watch`].
pub(super) async fn watch(
    store: &Store,
    key: &str,
    options: ListOptions,
) -> Result<WatchStream, StorageError> {
    let prefix = store.full_key(key, options.recursive)?;
    let requested = options.resource_version.map_or(0, |version| version.0);
    let initial_events = options.send_initial_events.unwrap_or(requested == 0);
    let mut watcher = Watcher {
        store: store.clone(),
        prefix,
        revision: 0,
        ready: VecDeque::new(),
        phase: StreamPhase::Sync { from: None },
        options,
    };
    if !initial_events {
        watcher.phase = StreamPhase::Open { failures: 0 };
        watcher.revision = match requested {
            0 => store.current_revision().await?,
            requested => requested,
        };
    }
    watcher.advance().await;
    let unreachable = |item: &mut Result<WatchEvent, StorageError>| {
        matches!(
            item,
            Err(StorageError::Unreachable { .. } | StorageError::Timeout { .. })
        )
    };
    if let Some(Err(error)) = watcher.ready.pop_front_if(unreachable) {
        return Err(error);
    }
    Ok(WatchStream::new(stream::unfold(watcher, Watcher::next)))
}

impl Watcher {
    /// Returns the next item and the rest of the watch.
    async fn next(mut self) -> Option<(Result<WatchEvent, StorageError>, Self)> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some((item, self));
            }
            if matches!(self.phase, StreamPhase::Ended) {
                return None;
            }
            self.advance().await;
        }
    }

    /// Takes one step of the current phase.
    async fn advance(&mut self) {
        let phase = std::mem::replace(&mut self.phase, StreamPhase::Ended);
        let next = match phase {
            StreamPhase::Sync { from } => self.sync(from).await,
            StreamPhase::Open { failures } => self.open(failures).await,
            StreamPhase::Follow(responses) => self.follow(responses).await,
            StreamPhase::Ended => Ok(StreamPhase::Ended),
        };
        match next {
            Ok(phase) => self.phase = phase,
            Err(error) => self.ready.push_back(Err(error)),
        }
    }

    /// Reads a page of the initial state; the first one sets the revision of all.
    async fn sync(&mut self, from: Option<String>) -> Result<StreamPhase, StorageError> {
        let range = list::range(&self.prefix, from.as_deref(), self.options.recursive);
        let wanted = self.wanted();
        let page = list::initial_page(&self.store, range, self.revision, wanted).await?;
        if self.revision == 0 {
            self.revision = page.revision;
        }
        let values = self.store.values().reader(&page.kvs).await;
        for kv in &page.kvs {
            let object = values.decode(kv)?;
            if self.options.predicate.matches(object.attributes()) {
                self.ready.push_back(Ok(WatchEvent::Added(object.into())));
            }
        }
        if let Some(last) = page.kvs.last().filter(|_| page.more) {
            return Ok(StreamPhase::Sync {
                from: Some(format!("{}\0", last.key)),
            });
        }
        let wants_initial_events = self.options.send_initial_events == Some(true);
        if wants_initial_events && self.options.predicate.allow_watch_bookmarks {
            self.ready.push_back(Ok(WatchEvent::Bookmark {
                revision: self.revision,
                initial_events_end: true,
            }));
        }
        Ok(StreamPhase::Open { failures: 0 })
    }

    /// Opens the backend's watch. If the backend cannot be reached, it is tried again unless the watch has only just
    /// begun.
    async fn open(&mut self, failures: u32) -> Result<StreamPhase, StorageError> {
        if failures > 0 {
            self.store.clock().sleep(REOPEN_PAUSE).await;
        }
        let range = if self.options.recursive {
            KeyRange::prefix(&self.prefix)
        } else {
            KeyRange::Key(self.prefix.clone())
        };
        let request = WatchRequest {
            range,
            start_revision: self.revision + 1,
            previous: true,
            progress: self.options.progress_notify,
        };
        match self.store.backend().watch(request).await {
            Ok(responses) => Ok(StreamPhase::Follow(responses)),
            Err(error) => broken(error, failures),
        }
    }

    /// Waits for the next response.
    async fn follow(&mut self, mut responses: WatchResponses) -> Result<StreamPhase, StorageError> {
        match responses.next().await {
            Some(Ok(response)) => {
                let events = response.events.iter();
                let read = events.flat_map(|event| iter::once(&event.kv).chain(&event.previous));
                let values = self.store.values().reader(read).await;
                self.take(&response, &values)?;
                Ok(StreamPhase::Follow(responses))
            }
            Some(Err(error)) => broken(error, 0),
            None => Ok(StreamPhase::Ended),
        }
    }

    /// Converts a response into events.
    fn take(&mut self, response: &WatchResponse, values: &ValueReader) -> Result<(), StorageError> {
        if response.events.is_empty() {
            // A watch from a future revision gets progress responses for earlier revisions, which are no news.
            if self.options.progress_notify && response.revision >= self.revision {
                self.revision = response.revision;
                self.ready.push_back(Ok(WatchEvent::Bookmark {
                    revision: response.revision,
                    initial_events_end: false,
                }));
            }
            return Ok(());
        }
        for event in &response.events {
            let converted = convert(values, &self.options, event)?;
            self.revision = event.kv.mod_revision;
            self.ready.extend(converted.map(Ok));
        }
        Ok(())
    }

    /// Returns the version that the initial state must have reached.
    fn wanted(&self) -> Option<ResourceVersion> {
        self.options.resource_version
    }
}

/// Returns the phase after a failure: open again, or end.
fn broken(error: BackendError, failures: u32) -> Result<StreamPhase, StorageError> {
    match error {
        BackendError::Compacted { .. } => Err(StorageError::WatchExpired),
        BackendError::Unavailable(_) if failures < REOPEN_ATTEMPTS_MAX => Ok(StreamPhase::Open {
            failures: failures + 1,
        }),
        other => Err(other.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::Clock;
    use crate::storage::backend::embedded::Embedded;
    use crate::storage::etcd3::Config;

    /// Progress is reported to watches that want it, and never for a revision before the one that they have reached.
    #[tokio::test]
    async fn progress_becomes_bookmarks_that_are_wanted_and_new() {
        let config = Config::new("/registry", "/pods", Clock::real());
        let backend = Arc::new(Embedded::in_memory(Clock::real()));
        let store = Store::new(backend, config);
        let values = store.values().reader([]).await;
        for (progress_notify, revision, expected) in [
            (true, 4, None),
            (true, 5, Some(5)),
            (true, 6, Some(6)),
            (false, 6, None),
        ] {
            let mut watcher = Watcher {
                store: store.clone(),
                options: ListOptions {
                    progress_notify,
                    ..ListOptions::default()
                },
                prefix: "/registry/pods/".to_owned(),
                revision: 5,
                ready: VecDeque::new(),
                phase: StreamPhase::Ended,
            };
            let progress = WatchResponse {
                revision,
                events: Vec::new(),
            };
            watcher.take(&progress, &values).expect("no event");
            let bookmark = watcher.ready.pop_front().map(|item| match item {
                Ok(WatchEvent::Bookmark { revision, .. }) => revision,
                other => panic!("{other:?}"),
            });
            assert_eq!(bookmark, expected, "{progress_notify} {revision}");
        }
    }

    #[test]
    fn a_backend_that_is_away_is_tried_ten_times() {
        let away = || BackendError::Unavailable("away".to_owned());
        for failures in 0..REOPEN_ATTEMPTS_MAX {
            let Ok(StreamPhase::Open { failures: next }) = broken(away(), failures) else {
                panic!("after {failures} failures");
            };
            assert_eq!(next, failures + 1);
        }
        assert!(broken(away(), REOPEN_ATTEMPTS_MAX).is_err());
        assert!(broken(BackendError::NoSpace, 0).is_err());
    }
}
