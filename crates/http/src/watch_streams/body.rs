//! The bodies that hyper gets on HTTP/2, and how a watch goes over from hyper to its connection.
//!
//! hyper tells nobody the number of a stream. So the body of a watch first yields an empty DATA frame, which needs no
//! flow control. The connection removes that frame from the bytes that hyper writes, and learns the number from it. One
//! watch at a time does so, hence there is no doubt which watch an empty frame belongs to.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Buf;
use hyper::body::{Body, Frame, SizeHint};
use ringwatch::sync::{Mutex, MutexGuard};

use super::ready::ReadyList;
use super::slot::{LockedSlot as SlotState, Slot, StreamEnd};
use crate::body::BoxError;
use crate::outgoing::{Chunk, CountedBody};

/// The watches of a connection that are about to go over. Clones are of the same connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handovers(Arc<BodyCell>);

#[derive(Debug, Default)]
struct BodyCell {
    state: Mutex<BodyState>,
    ready: Arc<ReadyList<Mutex<SlotState>>>,
}

#[derive(Debug, Default)]
struct BodyState {
    /// True once the client's window is known to be large enough.
    open: bool,
    /// The watch whose empty frame is on its way.
    announced: Option<Arc<Slot>>,
    /// True if that watch has ended meanwhile. h2 drops its frame, unless that is among those that h2 is about to
    /// write. So no other watch goes over before either it comes or h2 has written all those; watches that would
    /// meanwhile stay with h2.
    abandoned: bool,
    /// The watches that wait for their turn, at most one for each stream. One is woken at a time: a hundred that begin
    /// at once would else be polled thousands of times.
    waiting: VecDeque<Waker>,
}

impl Handovers {
    /// Wraps the body of a watch, which goes over to the connection if the client's windows allow it.
    pub(crate) fn watch(&self, body: CountedBody) -> StreamBody {
        StreamBody(BodyPhase::Offered {
            handovers: self.clone(),
            body: Some(body),
            waiting: None,
        })
    }

    pub(super) fn ready(&self) -> &Arc<ReadyList<Mutex<SlotState>>> {
        &self.0.ready
    }

    /// Allows watches to go over from here on.
    pub(super) fn open(&self) {
        self.lock().open = true;
    }

    /// Returns the watch to which an empty frame belongs; `None` if there is none. The next one has its turn.
    pub(super) fn take_announced(&self) -> Option<Arc<Slot>> {
        let mut state = self.lock();
        let slot = state.announced.take();
        state.abandoned = false;
        let next = state.waiting.pop_front();
        drop(state);
        next.into_iter().for_each(Waker::wake);
        slot
    }

    /// Announces a watch. Gives the body back if it is not to go over.
    fn poll_announce(
        &self,
        context: &mut Context<'_>,
        body: &mut Option<CountedBody>,
        waiting: &mut Option<Waker>,
    ) -> Poll<Option<Arc<Slot>>> {
        let mut state = self.lock();
        if !state.open || state.abandoned {
            return Poll::Ready(None);
        }
        if state.announced.is_some() {
            let waker = context.waker();
            if !state.waiting.iter().any(|it| it.will_wake(waker)) {
                if let Some(old) = waiting.replace(waker.clone()) {
                    state.waiting.retain(|it| !it.will_wake(&old));
                }
                state.waiting.push_back(waker.clone());
            }
            return Poll::Pending;
        }
        // It may have been polled before its turn.
        if let Some(own) = waiting.take() {
            state.waiting.retain(|it| !it.will_wake(&own));
        }
        let slot = body
            .take()
            .map(|body| Arc::new(Slot::of(&self.0.ready, body)));
        state.announced.clone_from(&slot);
        Poll::Ready(slot)
    }

    /// Forgets the announced watch if it has ended: h2 has written all that it had taken from the streams, so that the
    /// frame does not come any more.
    pub(super) fn settle(&self) {
        let mut state = self.lock();
        if state.abandoned {
            state.announced = None;
            state.abandoned = false;
        }
    }

    /// Notes that the stream of a watch has ended.
    fn abandon(&self, slot: &Arc<Slot>) {
        slot.close();
        let mut state = self.lock();
        let announced = state.announced.as_ref();
        if announced.is_some_and(|it| Arc::ptr_eq(it, slot)) {
            state.abandoned = true;
            let waiting = std::mem::take(&mut state.waiting);
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Forgets the waker of a watch that does not wait any more. It may have been its turn, which the next one gets
    /// then.
    fn forget(&self, waker: &Waker) {
        let mut state = self.lock();
        state.waiting.retain(|it| !it.will_wake(waker));
        let next = state.announced.is_none().then(|| state.waiting.pop_front());
        drop(state);
        next.flatten().into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, BodyState> {
        // The state is consistent after each of its changes, so poison is ignored.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of a response over HTTP/2.
#[derive(Debug)]
pub(crate) struct StreamBody(BodyPhase);

#[derive(Debug)]
enum BodyPhase {
    /// hyper writes it.
    Own(CountedBody),
    /// It is to go over to the connection, once it is its turn.
    Offered {
        handovers: Handovers,
        body: Option<CountedBody>,
        /// The waker by which it waits for its turn.
        waiting: Option<Waker>,
    },
    /// It has gone over: the connection writes it, and hyper waits for the end.
    Announced(Handovers, Arc<Slot>),
    /// It has ended.
    Ended,
}

impl From<CountedBody> for StreamBody {
    /// Wraps a body that hyper writes.
    fn from(body: CountedBody) -> Self {
        Self(BodyPhase::Own(body))
    }
}

impl Body for StreamBody {
    type Data = Chunk;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BoxError>>> {
        loop {
            let next = match &mut self.0 {
                BodyPhase::Own(body) => match ready!(Pin::new(body).poll_frame(context)) {
                    // An empty frame means that a watch goes over.
                    Some(Ok(frame)) if frame.data_ref().is_some_and(|it| !it.has_remaining()) => {
                        continue;
                    }
                    other => return Poll::Ready(other),
                },
                BodyPhase::Offered {
                    handovers,
                    body,
                    waiting,
                } => {
                    let slot = ready!(handovers.poll_announce(context, body, waiting));
                    let (slot, body) = (slot, body.take());
                    match (slot, body) {
                        (Some(slot), _) => {
                            self.0 = BodyPhase::Announced(handovers.clone(), slot);
                            let empty = Frame::data(Chunk::empty());
                            return Poll::Ready(Some(Ok(empty)));
                        }
                        (None, Some(body)) => BodyPhase::Own(body),
                        (None, None) => BodyPhase::Ended,
                    }
                }
                BodyPhase::Announced(_, slot) => match ready!(slot.poll_end(context)) {
                    StreamEnd::Returned(body) => BodyPhase::Own(body),
                    StreamEnd::Whole => BodyPhase::Ended,
                    StreamEnd::Failed(error) => {
                        self.0 = BodyPhase::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                BodyPhase::Ended => return Poll::Ready(None),
            };
            self.0 = next;
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyPhase::Own(body) => body.is_end_stream(),
            BodyPhase::Offered { .. } | BodyPhase::Announced(..) => false,
            BodyPhase::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyPhase::Own(body) => body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

impl Drop for StreamBody {
    /// Ends the watch: its stream is reset or at its end.
    fn drop(&mut self) {
        match &self.0 {
            BodyPhase::Announced(handovers, slot) => handovers.abandon(slot),
            BodyPhase::Offered {
                handovers,
                waiting: Some(waker),
                ..
            } => handovers.forget(waker),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use ringwatch::budget::Ledger;

    use super::*;
    use crate::body::full;
    use crate::outgoing::Outgoing;

    /// A stream's task, which counts how often it is woken.
    #[derive(Debug, Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns watches of one connection, the first of which is announced and the others wait, with their tasks.
    fn watches(count: usize) -> (Handovers, Vec<(StreamBody, Arc<Task>)>) {
        let outgoing = Outgoing::new(&Ledger::unlimited());
        let handovers = Handovers::default();
        handovers.open();
        let watch = |number| {
            let body = outgoing.begin().count(full("event").into());
            let mut watch = (handovers.watch(body), Arc::new(Task::default()));
            assert_eq!(poll(&mut watch), number == 0, "one is announced");
            watch
        };
        let watches = (0..count).map(watch).collect();
        (handovers, watches)
    }

    /// Returns true if the watch is announced.
    fn poll((body, task): &mut (StreamBody, Arc<Task>)) -> bool {
        let waker = Waker::from(Arc::clone(task));
        Pin::new(body)
            .poll_frame(&mut Context::from_waker(&waker))
            .is_ready()
    }

    fn woken(watches: &[(StreamBody, Arc<Task>)]) -> Vec<usize> {
        let woken = watches
            .iter()
            .map(|(_, task)| task.0.load(Ordering::Relaxed));
        woken.collect()
    }

    #[test]
    fn a_watch_that_is_reset_does_not_wait_any_more() {
        let (handovers, mut watches) = watches(2);
        assert_eq!(handovers.lock().waiting.len(), 1);
        watches.pop();
        assert!(handovers.lock().waiting.is_empty());
    }

    #[test]
    fn one_watch_at_a_time_has_its_turn() {
        let (handovers, mut watches) = watches(4);
        handovers.take_announced().expect("the first");
        assert_eq!(woken(&watches), [0, 1, 0, 0]);
        assert!(poll(&mut watches[1]));
        assert!(!poll(&mut watches[2]), "it waits, once");
        handovers.take_announced().expect("the second");
        assert_eq!(woken(&watches), [0, 1, 1, 0]);
        // It is reset before it takes its turn.
        watches.remove(2);
        assert_eq!(woken(&watches), [0, 1, 1]);
        assert!(poll(&mut watches[2]));
    }

    /// Its frame may still come, so that no other goes over for now.
    #[test]
    fn all_that_wait_for_a_watch_that_is_reset_stay_with_hyper() {
        let (_handovers, mut watches) = watches(4);
        watches.remove(0);
        assert_eq!(woken(&watches), [1, 1, 1]);
        for watch in &mut watches {
            assert!(poll(watch));
            assert!(matches!(watch.0.0, BodyPhase::Own(_)));
        }
    }
}
