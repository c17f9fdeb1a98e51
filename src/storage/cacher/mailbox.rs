//! What the dispatcher tells a watcher, in the order in which the watcher must hear it.
//!
//! A mailbox holds the sequence numbers of events, a bookmark, and the end of the watch. It is
//! bounded, and a full one is not an error and stops nobody: it only remembers the first number
//! that found no room. The watcher empties it, reads on in the window from there, and then asks to
//! be told again.
//!
//! # Nothing is missed, nothing comes twice
//!
//! The dispatcher puts an event into the window before it tells the mailboxes. The watcher calls
//! [`Mailbox::resume`] first and then reads the window to its end. So an event is in the window
//! when the watcher looks, or is told after `resume`; if it is both, its number is below the
//! watcher's cursor, and the watcher passes over it.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use crate::sync::{Mutex, MutexGuard};

/// How many events wait in a mailbox at most.
pub(super) const MAILBOX_EVENTS_MAX: usize = 100;

/// The meeting point of the dispatcher and one watcher.
#[derive(Debug)]
pub(super) struct Mailbox {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Rising sequence numbers.
    queue: VecDeque<u64>,
    /// The first number that is not in the queue; nothing is queued while this is set.
    missed: Option<u64>,
    /// The newest bookmark not yet taken.
    bookmark: Option<Bookmark>,
    /// Whether nothing will follow.
    ended: bool,
    /// The sleeping watcher.
    waker: Option<Waker>,
}

/// A bookmark that waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bookmark {
    /// It follows all events below this sequence number.
    pub(super) after: u64,
    /// The revision that these events lead to.
    pub(super) revision: u64,
}

/// What the watcher has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// Deliver the event with this number, unless it has been.
    Event(u64),
    /// Read the window from this number on.
    Missed(u64),
    /// Say that this revision is reached.
    Bookmark(u64),
    /// End the watch.
    End,
}

impl Mailbox {
    /// A mailbox that is told nothing until its watcher resumes.
    pub(super) fn parked() -> Self {
        Self {
            inner: Mutex::new(Inner {
                queue: VecDeque::new(),
                missed: Some(0),
                bookmark: None,
                ended: false,
                waker: None,
            }),
        }
    }

    /// Tells of an event. The caller wakes the watcher, outside its locks.
    #[must_use]
    pub(super) fn push(&self, sequence: u64) -> Option<Waker> {
        let mut inner = self.lock();
        if inner.missed.is_some() {
            return None;
        }
        if inner.queue.len() >= MAILBOX_EVENTS_MAX {
            inner.missed = Some(sequence);
            return None;
        }
        inner.queue.push_back(sequence);
        inner.waker.take()
    }

    /// Tells of a reached revision; an older bookmark that still waits is replaced. A watch that has
    /// been ended is not told: it would take the events that it does not hear of for none.
    #[must_use]
    pub(super) fn bookmark(&self, bookmark: Bookmark) -> Option<Waker> {
        let mut inner = self.lock();
        if inner.ended {
            return None;
        }
        inner.bookmark = Some(bookmark);
        inner.waker.take()
    }

    /// Ends the watch after what it has been told.
    #[must_use]
    pub(super) fn end(&self) -> Option<Waker> {
        let mut inner = self.lock();
        inner.ended = true;
        inner.waker.take()
    }

    /// Asks to be told of events again. The watcher then reads the window to its end.
    pub(super) fn resume(&self) {
        self.lock().missed = None;
    }

    /// The next signal.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Signal> {
        let mut inner = self.lock();
        if let Some(signal) = inner.next() {
            return Poll::Ready(signal);
        }
        inner.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn next(&mut self) -> Option<Signal> {
        let next_event = self.queue.front().copied().or(self.missed);
        let due = |bookmark: &Bookmark| next_event.is_none_or(|next| bookmark.after <= next);
        if let Some(bookmark) = self.bookmark.take_if(|bookmark| due(bookmark)) {
            return Some(Signal::Bookmark(bookmark.revision));
        }
        if let Some(sequence) = self.queue.pop_front() {
            return Some(Signal::Event(sequence));
        }
        if let Some(sequence) = self.missed {
            return Some(Signal::Missed(sequence));
        }
        self.ended.then_some(Signal::End)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(mailbox: &Mailbox) -> Poll<Signal> {
        mailbox.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_full_mailbox_remembers_where_it_stopped() {
        let mailbox = Mailbox::parked();
        mailbox.resume();
        for sequence in 0..=MAILBOX_EVENTS_MAX as u64 + 5 {
            let _ = mailbox.push(sequence);
        }
        for sequence in 0..MAILBOX_EVENTS_MAX as u64 {
            assert_eq!(take(&mailbox), Poll::Ready(Signal::Event(sequence)));
        }
        let missed = Signal::Missed(MAILBOX_EVENTS_MAX as u64);
        assert_eq!(take(&mailbox), Poll::Ready(missed));
        mailbox.resume();
        assert_eq!(take(&mailbox), Poll::Pending);
    }

    #[test]
    fn a_bookmark_takes_its_turn_and_the_end_comes_last() {
        let mailbox = Mailbox::parked();
        mailbox.resume();
        let _ = mailbox.push(4);
        let _ = mailbox.bookmark(Bookmark {
            after: 5,
            revision: 50,
        });
        let _ = mailbox.push(5);
        let _ = mailbox.end();
        let heard: Vec<_> = (0..4).map(|_| take(&mailbox)).collect();
        let expected = [
            Signal::Event(4),
            Signal::Bookmark(50),
            Signal::Event(5),
            Signal::End,
        ];
        assert_eq!(heard, expected.map(Poll::Ready));
    }
}
