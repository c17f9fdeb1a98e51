//! The watches of a connection that get the same events, which are found once for all of them.
//!
//! ```text
//!                            +--> frame head, chunk --> stream 1
//!   ring --wakes--> leader --+--> frame head, chunk --> stream 3
//!                            +--> the window is too small: stream 5 takes over, the chunk waits there
//! ```
//!
//! A watch that has nothing to write looks for the leader of its class, and becomes a follower if it is level with it.
//! Two watches of a class get a leader. From then on an event costs a follower its frame and no more: the leader alone
//! is woken, and asked for the chunk. A follower is asked itself only if something of its own wakes it, such as the end
//! of the server or its deadline.
//!
//! # Invariants
//!
//! - Each follower has been written all chunks that its leader has had, or holds the rest of the newest one, when it
//!   takes over. So its own events go on where the leader's are.
//! - No watch becomes a follower while it has a part of a chunk to write, or while the leader's chunk is being written,
//!   which is not for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use ringwatch::storage::FollowOutcome;
use ringwatch::sync::Mutex;

use super::ready::ReadyList;
use super::slot::{LockedSlot, Role, Slot};
use super::{ConnectionWatches, FRAME_BYTES_MAX, FrameProgress, HEADER_BYTES, data_header};
use crate::body::{LeadingEvents, SharedEvents};

/// The number of frames that a leader's chunks may take before something else has its turn.
const FOLLOWERS_FRAMES_AT_ONCE_MAX: usize = 256;

/// The leaders of a connection and their followers.
#[derive(Debug, Default)]
pub(super) struct Followers {
    /// The groups, by their class, but the one that is being written. Each has a follower.
    groups: HashMap<u64, Group>,
    /// The watch of each class that has no group.
    lone: HashMap<u64, Arc<Slot>>,
}

/// A leader and the watches that follow it.
#[derive(Debug)]
struct Group {
    leader: Box<dyn LeadingEvents>,
    /// Puts the leader on the list of what is ready.
    entry: Arc<Slot>,
    followers: Vec<Arc<Slot>>,
    /// The chunk that is being written.
    chunk: Option<ChunkProgress>,
}

/// The progress of writing a chunk.
#[derive(Debug)]
struct ChunkProgress {
    bytes: Bytes,
    /// The index of the follower whose turn it is. Those before it have the chunk.
    follower: usize,
    /// The number of bytes that are written to that follower.
    written: usize,
}

impl Followers {
    /// Notes that a watch has nothing to write, or has ended.
    pub(super) fn note_idle(
        &mut self,
        slot: &Arc<Slot>,
        ready: &Arc<ReadyList<Mutex<LockedSlot>>>,
    ) {
        let state = slot.lock();
        let role = state.role;
        let Some(shared) = state.shared() else {
            drop(state);
            return self.forget(slot);
        };
        match role {
            Role::Alone => {
                let shared = Arc::clone(shared);
                drop(state);
                self.seek(slot, &shared, ready);
            }
            Role::Follows(class) if shared.wants_own() => {
                let shared = Arc::clone(shared);
                drop(state);
                if let Some(group) = self.groups.get_mut(&class) {
                    group.take_over(slot, &shared);
                }
                self.drop_if_empty(class);
            }
            Role::Lone(_) | Role::Follows(_) | Role::Leads(_) => {}
        }
    }

    /// Forgets a watch that has ended.
    pub(super) fn forget(&mut self, slot: &Arc<Slot>) {
        let role = std::mem::replace(&mut slot.lock().role, Role::Alone);
        match role {
            Role::Lone(class) => {
                self.lone.remove(&class);
            }
            Role::Follows(class) => {
                if let Some(group) = self.groups.get_mut(&class) {
                    let _rest = group.remove(slot);
                }
                self.drop_if_empty(class);
            }
            Role::Alone | Role::Leads(_) => {}
        }
    }

    /// Has a watch follow the leader of its class. If it is the second one of its class, it gets a leader.
    fn seek(
        &mut self,
        slot: &Arc<Slot>,
        shared: &Arc<dyn SharedEvents>,
        ready: &Arc<ReadyList<Mutex<LockedSlot>>>,
    ) {
        let class = shared.class();
        if let Some(group) = self.groups.get_mut(&class) {
            group.add(class, slot, shared);
            return;
        }
        let Some(other) = self.lone.get(&class) else {
            slot.lock().role = Role::Lone(class);
            self.lone.insert(class, Arc::clone(slot));
            return;
        };
        let Some(leader) = shared.leader() else {
            return;
        };
        let mut group = Group {
            leader,
            entry: Arc::new(Slot::of_leader(ready, class)),
            followers: Vec::new(),
            chunk: None,
        };
        group.add(class, slot, shared);
        if group.followers.is_empty() {
            return;
        }
        // If it is not level, it seeks when it has nothing to write the next time.
        let mut state = other.lock();
        state.role = Role::Alone;
        let of_other = state.shared().cloned();
        drop(state);
        if let Some(shared) = of_other {
            group.add(class, other, &shared);
        }
        self.lone.remove(&class);
        Waker::from(Arc::clone(&group.entry)).wake();
        self.groups.insert(class, group);
    }

    fn drop_if_empty(&mut self, class: u64) {
        if self
            .groups
            .get(&class)
            .is_some_and(|it| it.followers.is_empty())
        {
            self.groups.remove(&class);
        }
    }
}

impl Group {
    /// Has a watch follow, if it is level with the leader, and has been written all that it had.
    fn add(&mut self, class: u64, slot: &Arc<Slot>, shared: &Arc<dyn SharedEvents>) {
        let is_written = slot.lock().left() == 0;
        if is_written
            && self.chunk.is_none()
            && shared.follow(&mut *self.leader) == FollowOutcome::Follows
        {
            slot.lock().role = Role::Follows(class);
            self.followers.push(Arc::clone(slot));
        }
    }

    /// Has a follower take over, with what it is to be written of the chunk.
    fn take_over(&mut self, slot: &Arc<Slot>, shared: &Arc<dyn SharedEvents>) {
        let rest = self.remove(slot);
        let mut state = slot.lock();
        state.role = Role::Alone;
        if let Some(rest) = rest {
            state.keep(rest);
        }
        drop(state);
        shared.take_over(&*self.leader);
        Waker::from(Arc::clone(slot)).wake();
    }

    /// Removes a follower, and returns what is left to be written to it of the chunk.
    fn remove(&mut self, slot: &Arc<Slot>) -> Option<Bytes> {
        let mut followers = self.followers.iter();
        let at = followers.position(|it| Arc::ptr_eq(it, slot))?;
        self.followers.remove(at);
        let chunk = self.chunk.as_mut()?;
        if at < chunk.follower {
            chunk.follower -= 1;
            return None;
        }
        let is_next = at == chunk.follower;
        let written = if is_next {
            std::mem::take(&mut chunk.written)
        } else {
            0
        };
        Some(chunk.bytes.slice(written..))
    }

    /// Has all followers take over from a leader that has ended.
    fn dissolve(&mut self) {
        for slot in std::mem::take(&mut self.followers) {
            let mut state = slot.lock();
            state.role = Role::Alone;
            let shared = state.shared().cloned();
            drop(state);
            if let Some(shared) = shared {
                shared.take_over(&*self.leader);
            }
            Waker::from(slot).wake();
        }
    }
}

impl ConnectionWatches {
    /// Appends frames of the followers of a leader. `Full` if the next does not fit.
    pub(super) fn write_followers(
        &mut self,
        class: u64,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> FrameProgress {
        let Some(mut group) = self.followers.groups.remove(&class) else {
            return FrameProgress::Done;
        };
        let progress = self.write_group(&mut group, context, out, bytes_max);
        if !group.followers.is_empty() {
            self.followers.groups.insert(class, group);
        }
        progress
    }

    /// Appends what the leader of a watch has, before the watch itself is asked, which may end it. `None` if the leader
    /// has more, for which the watch has to wait.
    pub(super) fn write_leader_of(
        &mut self,
        slot: &Arc<Slot>,
        class: u64,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Option<FrameProgress> {
        let Some(group) = self.followers.groups.get(&class) else {
            return Some(FrameProgress::Done);
        };
        let entry = Arc::clone(&group.entry);
        let waker = Waker::from(Arc::clone(&entry));
        let mut context = Context::from_waker(&waker);
        let progress = self.write_followers(class, &mut context, out, bytes_max);
        if progress == FrameProgress::Done && entry.is_queued() {
            Waker::from(Arc::clone(slot)).wake();
            return None;
        }
        Some(progress)
    }

    fn write_group(
        &mut self,
        group: &mut Group,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> FrameProgress {
        let mut frames = 0;
        while frames < FOLLOWERS_FRAMES_AT_ONCE_MAX {
            if group.followers.is_empty() {
                return FrameProgress::Done;
            }
            if group.chunk.is_none() {
                let chunk = group.leader.poll_chunk(context, group.followers.len());
                match chunk {
                    Poll::Pending => return FrameProgress::Done,
                    Poll::Ready(None) => {
                        group.dissolve();
                        return FrameProgress::Done;
                    }
                    Poll::Ready(Some(bytes)) => {
                        group.chunk = Some(ChunkProgress {
                            bytes,
                            follower: 0,
                            written: 0,
                        });
                    }
                }
            }
            if self.write_chunk(group, &mut frames, out, bytes_max) == FrameProgress::Full {
                return FrameProgress::Full;
            }
        }
        context.waker().wake_by_ref();
        FrameProgress::Done
    }

    /// Appends a leader's chunk for each follower, as long as the number of frames allows. Those whose window is too
    /// small take over. `Full` if the next frame does not fit.
    fn write_chunk(
        &mut self,
        group: &mut Group,
        frames: &mut usize,
        out: &mut Vec<u8>,
        bytes_max: usize,
    ) -> FrameProgress {
        let most = FRAME_BYTES_MAX.min(bytes_max - HEADER_BYTES);
        while *frames < FOLLOWERS_FRAMES_AT_ONCE_MAX {
            let Some(chunk) = &mut group.chunk else {
                break;
            };
            let Some(slot) = group.followers.get(chunk.follower) else {
                group.chunk = None;
                break;
            };
            let mut state = slot.lock();
            let rest = &chunk.bytes[chunk.written..];
            let part = &rest[..rest.len().min(most)];
            let allowed = (self.windows.initial() + state.credit).min(self.windows.of_watches());
            let Some(shared) = state.shared() else {
                // Its stream has ended.
                drop(state);
                group.followers.remove(chunk.follower);
                chunk.written = 0;
                continue;
            };
            if allowed < part.len() as i64 {
                let shared = Arc::clone(shared);
                drop(state);
                let slot = Arc::clone(slot);
                group.take_over(&slot, &shared);
                continue;
            }
            if out.len() + HEADER_BYTES + part.len() > bytes_max {
                return FrameProgress::Full;
            }
            if out.capacity() == 0 {
                out.reserve_exact(bytes_max);
            }
            out.extend_from_slice(&data_header(state.stream, part.len()));
            out.extend_from_slice(part);
            state.credit -= part.len() as i64;
            self.windows.sent_by_watch(part.len() as i64);
            if part.len() < rest.len() {
                chunk.written += part.len();
            } else {
                chunk.follower += 1;
                chunk.written = 0;
            }
            *frames += 1;
        }
        FrameProgress::Done
    }
}
