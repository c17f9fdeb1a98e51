//! A watch, and what the suite expects of its next event.

use std::sync::Arc;

use futures::StreamExt;
use ringwatch::meta::{Object, WatchEvent};
use ringwatch::storage::{StorageError, WatchStream};
use ringwatch_testing::eventually::DEADLINE;

use super::Subject;

/// A watch of the subject.
pub(crate) struct Watching(pub(crate) WatchStream);

impl Watching {
    /// Returns the next item; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<WatchEvent, StorageError>> {
        tokio::time::timeout(DEADLINE, self.0.next())
            .await
            .expect("an event in time")
    }

    /// Returns the next event.
    pub(crate) async fn event(&mut self) -> WatchEvent {
        self.next()
            .await
            .expect("a watch that goes on")
            .expect("an event")
    }

    /// Returns the next event, progress reports left out.
    pub(crate) async fn change(&mut self) -> WatchEvent {
        loop {
            match self.event().await {
                WatchEvent::Bookmark {
                    initial_events_end: false,
                    ..
                } => {}
                event => return event,
            }
        }
    }

    pub(crate) async fn added(&mut self, name: &str, revision: u64) -> Arc<Object> {
        match self.change().await {
            WatchEvent::Added(object) => checked(object, name, revision),
            other => panic!("{name} should be added, not {other:?}"),
        }
    }

    pub(crate) async fn modified(&mut self, name: &str, revision: u64) -> Arc<Object> {
        match self.change().await {
            WatchEvent::Modified(object) => checked(object, name, revision),
            other => panic!("{name} should be modified, not {other:?}"),
        }
    }

    pub(crate) async fn deleted(&mut self, name: &str, revision: u64) -> Arc<Object> {
        match self.change().await {
            WatchEvent::Deleted(object) => checked(object, name, revision),
            other => panic!("{name} should be deleted, not {other:?}"),
        }
    }

    /// Returns the next event, which must be a bookmark: its revision, and true if it ends the initial events.
    pub(crate) async fn bookmark(&mut self) -> (u64, bool) {
        match self.event().await {
            WatchEvent::Bookmark {
                revision,
                initial_events_end,
            } => (revision, initial_events_end),
            other => panic!("a bookmark, not {other:?}"),
        }
    }

    /// Checks that no event was sent before a marker that is written now: the marker is the next event, if the watch
    /// selects it at all.
    pub(crate) async fn nothing(&mut self, subject: &Subject) {
        let marker = subject.next_marker();
        let mut all = subject.watch_from_now("/pods/").await;
        let written = subject.create("marker", &marker).await.revision();
        all.added(&marker, written).await;
        while let Some(Some(event)) = futures::FutureExt::now_or_never(self.0.next()) {
            match event.expect("no error") {
                WatchEvent::Bookmark {
                    initial_events_end: false,
                    ..
                } => {}
                WatchEvent::Added(object) if object.namespace() == "marker" => {}
                other => panic!("nothing, not {other:?}"),
            }
        }
    }
}

fn checked(object: Arc<Object>, name: &str, revision: u64) -> Arc<Object> {
    assert_eq!((object.name(), object.revision()), (name, revision));
    object
}
