//! The stream of a watch, and how several watches share the work of one.
//!
//! Watches of one cache that select the same objects get the same events. Whoever has several of them can let one more
//! watch, the *leader*, find the events for all: the others *follow* it, which costs nothing while it lasts. A follower
//! [takes up](WatchStream::take_over) its own events again wherever the leader is.
//!
//! ```text
//!   alone:      events --> watch --> its client
//!   following:  events --> leader --> whoever has it gives each event to the clients of all followers
//! ```

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::BoxStream;

use super::StorageError;
use crate::meta::WatchEvent;

/// The events of a watch, in the order of their revisions. An error is the last item. Dropping the stream ends the
/// watch.
///
/// ```
/// use futures::{StreamExt, stream};
/// use ringwatch::meta::WatchEvent;
/// use ringwatch::storage::{FollowOutcome, WatchStream};
///
/// # futures::executor::block_on(async {
/// let bookmark = WatchEvent::Bookmark { revision: 7, initial_events_end: false };
/// let mut watch = WatchStream::new(stream::iter([Ok(bookmark)]));
/// let mut other = WatchStream::new(stream::pending());
///
/// // Only watches that a cache serves can follow each other.
/// assert!(watch.leader().is_none());
/// assert_eq!(watch.follow(&mut other), FollowOutcome::Unlike);
/// assert_eq!(watch.next().await.expect("an event").expect("no error").revision(), 7);
/// # });
/// ```
pub struct WatchStream(Source);

enum Source {
    Plain(BoxStream<'static, Result<WatchEvent, StorageError>>),
    Followable(Box<dyn FollowableWatch>),
}

/// The outcome of [`WatchStream::follow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowOutcome {
    /// The watch follows: its stream has no items until it takes over.
    Follows,
    /// One of both has events to deliver that the other has delivered. It may be tried again later.
    NotLevel,
    /// The two do not get the same events.
    Unlike,
}

/// A watch that can leave its events to another one.
///
/// The methods are those of [`WatchStream`], which says what they do.
pub(crate) trait FollowableWatch:
    Stream<Item = Result<WatchEvent, StorageError>> + Any + Send + Unpin
{
    fn leader(&self) -> Option<Box<dyn FollowableWatch>>;

    fn follow(&mut self, leader: &mut dyn FollowableWatch) -> FollowOutcome;

    fn take_over(&mut self, leader: &dyn FollowableWatch);
}

impl WatchStream {
    /// Creates a watch of the events of a stream, which neither leads nor follows.
    pub fn new(
        events: impl Stream<Item = Result<WatchEvent, StorageError>> + Send + 'static,
    ) -> Self {
        Self(Source::Plain(Box::pin(events)))
    }

    /// Creates a watch that can follow others.
    pub(crate) fn followable(watch: impl FollowableWatch) -> Self {
        Self(Source::Followable(Box::new(watch)))
    }

    /// Returns another watch of the same events from here on, which has no end of its own; `None` for a watch that has
    /// not come to the newest events, or that no cache serves.
    #[must_use]
    pub fn leader(&self) -> Option<Self> {
        match &self.0 {
            Source::Plain(_) => None,
            Source::Followable(watch) => watch.leader().map(|it| Self(Source::Followable(it))),
        }
    }

    /// Leaves the events from here on to a leader. The caller delivers those to the client of this watch too, from the
    /// next one that the leader's stream has.
    pub fn follow(&mut self, leader: &mut Self) -> FollowOutcome {
        match (&mut self.0, &mut leader.0) {
            (Source::Followable(watch), Source::Followable(leader)) => watch.follow(&mut **leader),
            _ => FollowOutcome::Unlike,
        }
    }

    /// Takes up the events of this watch again, after the last one that the leader's stream had. If the leader has
    /// ended, this watch ends as well, by the same error if that was one.
    pub fn take_over(&mut self, leader: &Self) {
        if let (Source::Followable(watch), Source::Followable(leader)) = (&mut self.0, &leader.0) {
            watch.take_over(&**leader);
        }
    }
}

impl fmt::Debug for WatchStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WatchStream")
            .finish_non_exhaustive()
    }
}

impl Stream for WatchStream {
    type Item = Result<WatchEvent, StorageError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.0 {
            Source::Plain(events) => events.as_mut().poll_next(context),
            Source::Followable(watch) => Pin::new(watch).poll_next(context),
        }
    }
}
