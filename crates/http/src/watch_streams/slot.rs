//! The state of one watch that its connection writes, shared by the connection and the stream's task in hyper.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use hyper::body::Body;
use ringwatch::sync::{Mutex, MutexGuard};

use super::ready::{ReadyEntry, ReadyList};
use crate::body::{BoxError, SharedEvents};
use crate::outgoing::{Chunk, CountedBody};

/// A watch that its connection writes. Waking it puts it on the connection's list of ready watches.
pub(super) type Slot = ReadyEntry<Mutex<LockedSlot>>;

/// The state behind the lock. The stream's task takes it only when the watch begins and ends.
#[derive(Debug)]
pub(super) struct LockedSlot {
    /// The number of the stream; 0 before the connection has learnt it.
    pub(super) stream: u32,
    /// The window of the stream without the initial window: what was granted less what was sent.
    pub(super) credit: i64,
    /// True if it waits for the connection's window.
    pub(super) starved: bool,
    /// The part that it has among watches with the same events.
    pub(super) role: Role,
    /// The events; `None` once they have ended, or the stream is gone.
    body: Option<CountedBody>,
    /// The part of a chunk for which there was no window.
    pending: Option<Chunk>,
    /// The end of the watch, for the stream's task.
    end: Option<StreamEnd>,
    /// The stream's task, which waits for the end.
    task: Option<Waker>,
}

/// The part of an entry among watches with the same events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Its events are its own, and it has not looked for others.
    Alone,
    /// Its events are its own, and others of the class may find it.
    Lone(u64),
    /// A watch that gets the chunks of the leader of a class.
    Follows(u64),
    /// No watch, but the leader of a class.
    Leads(u64),
}

/// The end of a watch as the stream's task sees it.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// All events are written: h2 is to end the stream.
    Whole,
    /// The body has failed: h2 is to reset the stream.
    Failed(BoxError),
    /// The connection does not write it: the stream's task is to.
    Returned(CountedBody),
}

impl Slot {
    /// Creates a watch with this body, of a stream that is not known yet.
    pub(super) fn of(ready: &Arc<ReadyList<Mutex<LockedSlot>>>, body: CountedBody) -> Self {
        Self::with(ready, Role::Alone, Some(body.alone()))
    }

    /// Creates the entry of the leader of a class, which has no stream.
    pub(super) fn of_leader(ready: &Arc<ReadyList<Mutex<LockedSlot>>>, class: u64) -> Self {
        Self::with(ready, Role::Leads(class), None)
    }

    fn with(
        ready: &Arc<ReadyList<Mutex<LockedSlot>>>,
        role: Role,
        body: Option<CountedBody>,
    ) -> Self {
        let state = LockedSlot {
            stream: 0,
            credit: 0,
            starved: false,
            role,
            body,
            pending: None,
            end: None,
            task: None,
        };
        Self::new(Arc::clone(ready), Mutex::new(state))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LockedSlot> {
        // The state is consistent after each of its changes, so poison is ignored.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the body back to the stream's task.
    pub(super) fn give_back(&self) {
        let mut state = self.lock();
        let body = state.body.take().map(CountedBody::among_others);
        let end = body.map(StreamEnd::Returned);
        state.finish(end);
    }

    /// Drops the body: nothing more is written.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        let content = (state.body.take(), state.pending.take());
        let of_stream = (state.end.take(), state.task.take());
        drop(state);
        drop((content, of_stream));
    }

    /// Completes when the connection has written all events, or does not write them.
    pub(super) fn poll_end(&self, context: &mut Context<'_>) -> Poll<StreamEnd> {
        let mut state = self.lock();
        if let Some(end) = state.end.take() {
            return Poll::Ready(end);
        }
        let waker = context.waker();
        if !state.task.as_ref().is_some_and(|it| it.will_wake(waker)) {
            state.task = Some(waker.clone());
        }
        Poll::Pending
    }
}

impl LockedSlot {
    /// Returns true if there is a chunk to write, or a part of one.
    pub(super) fn poll_chunk(&mut self, context: &mut Context<'_>) -> bool {
        while self.pending.is_none() {
            let Some(body) = &mut self.body else {
                return false;
            };
            match Pin::new(body).poll_frame(context) {
                Poll::Pending => return false,
                Poll::Ready(Some(Ok(frame))) => {
                    // No watch has trailers.
                    self.pending = frame.into_data().ok().filter(Buf::has_remaining);
                }
                Poll::Ready(Some(Err(error))) => self.finish(Some(StreamEnd::Failed(error))),
                Poll::Ready(None) => self.finish(Some(StreamEnd::Whole)),
            }
        }
        true
    }

    /// Returns the events of the watch, if it can follow others; `None` once it has ended.
    pub(super) fn shared(&self) -> Option<&Arc<dyn SharedEvents>> {
        self.body.as_ref().and_then(CountedBody::shared)
    }

    /// Takes the rest of a leader's chunk, to be written when there is a window for it.
    pub(super) fn keep(&mut self, rest: Bytes) {
        self.pending = self.body.as_ref().map(|body| body.chunk(rest));
    }

    /// Returns how many bytes of the chunk are left to write.
    pub(super) fn left(&self) -> usize {
        self.pending.as_ref().map_or(0, Buf::remaining)
    }

    /// Counts a chunk that has to wait as pending.
    pub(super) fn hold_back(&mut self) {
        if let (Some(body), Some(chunk)) = (&self.body, &mut self.pending) {
            body.hold(chunk);
        }
    }

    /// Appends so many bytes of the chunk.
    pub(super) fn write(&mut self, mut bytes: usize, out: &mut Vec<u8>) {
        self.credit -= bytes as i64;
        let Some(chunk) = &mut self.pending else {
            return;
        };
        while bytes > 0 {
            let part = chunk.chunk();
            let taken = part.len().min(bytes);
            out.extend_from_slice(&part[..taken]);
            chunk.advance(taken);
            bytes -= taken;
        }
        if !chunk.has_remaining() {
            self.pending = None;
        }
    }

    fn finish(&mut self, end: Option<StreamEnd>) {
        self.body = None;
        self.end = end;
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }
}
