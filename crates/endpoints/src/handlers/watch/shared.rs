//! Watches of a connection that get the same events: each leaves its own to a leader, and takes them up again.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use ringwatch::storage::{FollowOutcome, SelectionPredicate};
use ringwatch_http::{LeadingEvents, SharedEvents};
use ringwatch_observe::open_watches::{LeaderTally, WatchEntry};

use super::chunks::EventChunks;
use crate::encoding::EventEncoder;

/// The events of a watch, which its body and its connection share.
#[derive(Debug)]
pub(super) struct SharedWatch {
    /// See [`SharedEvents::class`].
    class: u64,
    state: Mutex<WatchState>,
}

/// The state of a watch behind the lock. Its body and its connection take the lock in the same task.
#[derive(Debug)]
pub(super) struct WatchState {
    pub(super) chunks: EventChunks,
    /// The watch among those that clients have open.
    pub(super) entry: WatchEntry,
    /// True if the watch ends so soon that it has to get its last bookmark itself.
    pub(super) is_ending: bool,
    /// True while the watch follows.
    follows: bool,
}

/// The chunks of all watches that follow.
#[derive(Debug)]
pub(super) struct LeadingChunks {
    chunks: EventChunks,
    tally: LeaderTally,
}

impl SharedWatch {
    /// Creates the shared state of a watch of a class.
    pub(super) fn new(class: u64, chunks: EventChunks, entry: WatchEntry) -> Self {
        Self {
            class,
            state: Mutex::new(WatchState {
                chunks,
                entry,
                is_ending: false,
                follows: false,
            }),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, WatchState> {
        // A panic while it was held ends the connection.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the class of a watch of a namespace (empty: of all) of the objects that `encoder` writes.
pub(super) fn class(
    encoder: &EventEncoder,
    namespace: &str,
    predicate: &SelectionPredicate,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    encoder.class().hash(&mut hasher);
    namespace.hash(&mut hasher);
    predicate.label.to_string().hash(&mut hasher);
    predicate.field.to_string().hash(&mut hasher);
    predicate.shard.to_string().hash(&mut hasher);
    predicate.allow_watch_bookmarks.hash(&mut hasher);
    hasher.finish()
}

impl WatchState {
    /// Returns true if the watch may leave its events to a leader now.
    fn may_follow(&self) -> bool {
        !self.is_ending && !self.follows && self.chunks.is_between_events()
    }
}

impl SharedEvents for SharedWatch {
    fn class(&self) -> u64 {
        self.class
    }

    fn leader(&self) -> Option<Box<dyn LeadingEvents>> {
        let state = self.lock();
        if !state.may_follow() {
            return None;
        }
        Some(Box::new(LeadingChunks {
            chunks: state.chunks.of_leader()?,
            tally: LeaderTally::default(),
        }))
    }

    fn follow(&self, leader: &mut dyn LeadingEvents) -> FollowOutcome {
        let leader: &mut dyn Any = leader;
        let Some(leader) = leader.downcast_mut::<LeadingChunks>() else {
            return FollowOutcome::Unlike;
        };
        let mut state = self.lock();
        if state.chunks.encoder.class() != leader.chunks.encoder.class() {
            return FollowOutcome::Unlike;
        }
        if !state.may_follow() || !leader.chunks.is_between_events() {
            return FollowOutcome::NotLevel;
        }
        let outcome = state.chunks.events.follow(&mut leader.chunks.events);
        if outcome == FollowOutcome::Follows {
            state.follows = true;
            state.entry.follow(&leader.tally);
        }
        outcome
    }

    fn wants_own(&self) -> bool {
        let state = self.lock();
        state.is_ending && state.follows
    }

    fn take_over(&self, leader: &dyn LeadingEvents) {
        let leader: &dyn Any = leader;
        if let Some(leader) = leader.downcast_ref::<LeadingChunks>() {
            let mut state = self.lock();
            state.follows = false;
            state.entry.take_over();
            state.chunks.take_over(&leader.chunks);
        }
    }
}

impl LeadingEvents for LeadingChunks {
    fn poll_chunk(&mut self, context: &mut Context<'_>, followers: usize) -> Poll<Option<Bytes>> {
        self.chunks.tally.count_for(followers);
        let chunk = self.chunks.poll_chunk(context);
        if let Poll::Ready(Some(_)) = &chunk {
            let events = self.chunks.count_chunk();
            self.tally.add(events, self.chunks.reached);
        }
        chunk
    }
}
