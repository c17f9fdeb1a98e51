//! A watch that leaves its events to another one, the leader, and takes them up again.
//!
//! ```text
//!   follower   Live ------ follow -----> Following ------ take_over -----> CatchUp ---> Live
//!                cursor 7 = cursor 7                    cursor 9 = cursor 9
//!   leader     CatchUp --> Live ---------- 7, 8 ------------+---- 9, 10 ...
//! ```
//!
//! A follower has no registration, so the dispatcher does not know it. What makes that safe is the cursor: a watch has
//! delivered every event below its cursor that it selects, and none from there on. Two watches with the same selection
//! and the same cursor get the same events from then on, and it does not matter which of them reads them.
//!
//! # No gap, no repetition
//!
//! - A leader is attached before the first watch follows it, and reads the window from the cursor of that watch on, as
//!   any watch that begins. It leads once nothing is left there for it.
//! - The cursor of a live watch stays where its last event was, though others follow that it does not select. Once all
//!   events below a number have been sent ([`WatchCache::sent`]) and its channel is empty, none of them is left for it.
//! - Two live watches are level if none of the events that are published beyond the lower cursor is selected; then both
//!   take the end of the window as their cursor. Numbers below a cursor that come through a channel later are passed
//!   over. Later events have later revisions than the cache has reached, so that no start revision hides them from one
//!   watch alone.
//! - A watch that takes over has the leader's cursor, is attached again, and reads the window from there on, like one
//!   that begins. If all watches are being ended for good meanwhile, it reads the window to its end, and ends.
//! - The type may have stopped being fed while a watch was not attached; then nobody would end it. So it looks if its
//!   leader has been ended, under the lock under which all watches are.
//!
//! # No bookmark goes back
//!
//! The leader's `reached` is at least that of each watch that follows it, and a bookmark below it is not delivered.
//!
//! [`WatchCache::sent`]: super::watch_cache::WatchCache::sent

use std::any::Any;
use std::sync::Arc;

use super::signal_channel::Receiver;
use super::watcher::{CacheWatcher, LOOKED_AT_MAX, WatcherPhase};
use crate::storage::cacher::window::event::CacheEvent;
use crate::storage::{FollowOutcome, FollowableWatch};

impl FollowableWatch for CacheWatcher {
    fn leader(&self) -> Option<Box<dyn FollowableWatch>> {
        if !matches!(self.phase, WatcherPhase::Live) {
            return None;
        }
        let attachment = self.attachment.of_leader()?;
        // The type may have stopped being fed before the attachment, so that nobody ends the leader.
        attachment.cache.check_ready().ok()?;
        let mut leader = Self {
            attachment,
            phase: WatcherPhase::CatchUp { resumed: false },
            cursor: self.settled_cursor(),
            start_revision: self.start_revision,
            with_previous: self.with_previous,
            reached: self.reached,
            overflowed: None,
            place: None,
            complete: self.complete,
        };
        leader.go_live().then(|| Box::new(leader) as _)
    }

    fn follow(&mut self, leader: &mut dyn FollowableWatch) -> FollowOutcome {
        let leader: &mut dyn Any = leader;
        let Some(leader) = leader.downcast_mut::<Self>() else {
            return FollowOutcome::Unlike;
        };
        if !self.is_like(leader) {
            return FollowOutcome::Unlike;
        }
        let Some(level) = self.level_with(leader) else {
            return FollowOutcome::NotLevel;
        };
        leader.cursor = level;
        leader.reached = leader.reached.max(self.reached);
        leader.complete = leader.complete.max(self.complete);
        if let (Some(place), Some(receiver)) = (&self.place, leader.attachment.receiver()) {
            place.has_channel(receiver.observer());
        }
        self.attachment.detach();
        self.phase = WatcherPhase::Following;
        FollowOutcome::Follows
    }

    fn take_over(&mut self, leader: &dyn FollowableWatch) {
        let leader: &dyn Any = leader;
        let Some(leader) = leader.downcast_ref::<Self>() else {
            return;
        };
        if !matches!(self.phase, WatcherPhase::Following) {
            return;
        }
        self.cursor = leader.settled_cursor();
        self.reached = leader.reached;
        self.complete = leader.complete;
        self.phase = WatcherPhase::CatchUp { resumed: false };
        match leader.phase {
            // The window tells this watch the same.
            WatcherPhase::Expired => return,
            WatcherPhase::Ended | WatcherPhase::CutOff => {
                self.phase = WatcherPhase::CutOff;
                return;
            }
            _ => {}
        }
        if !self.attachment.attach_again() {
            return;
        }
        if self.attachment.cache.check_ready().is_err() && leader.is_told_to_end() {
            self.phase = WatcherPhase::CutOff;
            return;
        }
        if let (Some(place), Some(receiver)) = (&self.place, self.attachment.receiver()) {
            place.has_channel(receiver.observer());
            place.reads(self.cursor, false);
        }
        // As a live watch it cannot be passed by events that it does not select, however long its client takes.
        self.go_live();
    }
}

impl CacheWatcher {
    /// Returns true if another watch delivers each event as this one.
    fn is_like(&self, other: &Self) -> bool {
        let (own, others) = (&self.attachment, &other.attachment);
        std::ptr::eq(&*own.cache, &*others.cache)
            && own.bookmarks.is_some() == others.bookmarks.is_some()
            && self.with_previous == other.with_previous
            && own.filter.selects_as(&others.filter)
    }

    /// Returns the cursor that this watch and a leader like it have if they have delivered the same events.
    fn level_with(&self, leader: &Self) -> Option<u64> {
        let are_live = [self, leader].map(|it| matches!(it.phase, WatcherPhase::Live));
        if are_live != [true, true] {
            return None;
        }
        let low = self.settled_cursor().min(leader.settled_cursor());
        let (view, revision) = self.attachment.cache.current();
        if self.start_revision.max(leader.start_revision) > revision || low < view.first() {
            return None;
        }
        let between = usize::try_from(view.end().saturating_sub(low)).ok()?;
        let start = self.start_revision.min(leader.start_revision);
        let filter = &self.attachment.filter;
        let is_left = |it: &CacheEvent| it.revision > start && filter.convert(it).is_some();
        let mut events = view.events(low).take(LOOKED_AT_MAX);
        let is_level = between <= LOOKED_AT_MAX && !events.any(|it| is_left(it));
        is_level.then(|| view.end())
    }

    /// Returns the cursor beyond the events that have been sent, if none of them is left for this watch.
    fn settled_cursor(&self) -> u64 {
        let sent = self.attachment.cache.sent();
        let is_live = matches!(self.phase, WatcherPhase::Live);
        let has_all = is_live && self.attachment.receiver().is_some_and(Receiver::is_empty);
        if has_all {
            self.cursor.max(sent)
        } else {
            self.cursor
        }
    }

    /// Passes over the events of the window that the watch does not select, and then follows its channel. Returns false
    /// if one is left to be delivered, or there are too many to look at.
    fn go_live(&mut self) -> bool {
        let cache = Arc::clone(&self.attachment.cache);
        while !matches!(self.phase, WatcherPhase::Live) {
            let view = cache.view();
            if self.cursor < view.first() {
                return false;
            }
            for event in view.events(self.cursor).take(LOOKED_AT_MAX) {
                let is_selected = self.attachment.filter.convert(event).is_some();
                if is_selected && event.revision > self.start_revision {
                    return false;
                }
                self.cursor += 1;
            }
            if self.cursor < view.end() {
                return false;
            }
            self.end_of_window();
        }
        true
    }

    /// Returns true if the watch has been told to end, whatever it has to read before that.
    fn is_told_to_end(&self) -> bool {
        // Whoever has the lock sees either none or all of the watches ended.
        let _registry = self.attachment.cache.watchers();
        self.attachment.receiver().is_some_and(Receiver::has_ended)
    }
}
