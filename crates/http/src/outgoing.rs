//! The bytes of a connection that its client has not taken: counted, and bounded.
//!
//! ```text
//!   body --chunk--> [ counted from here ... ] hyper [ ... to here ] --> joined writes, TLS --> kernel
//!                     all streams together
//! ```
//!
//! A chunk carries its stream's count with it, and hyper drops it when all of it has been written.
//! So what is counted is exactly what hyper holds, whatever its buffers are like: on HTTP/1.1 one
//! queue, on HTTP/2 one for each stream. Once a connection holds [`OUTGOING_BYTES_MAX`], its bodies
//! are not asked for more until some of it has gone. A watch then simply stays where it is in its
//! window, so a client that does not read costs these bytes and no more.
//!
//! # Streams do not starve each other
//!
//! A client may read one stream and leave another alone. What the other has pending must not stop
//! the one: so a stream of which nothing is pending may always hand over one chunk. Hence the bound
//! of a connection is [`OUTGOING_BYTES_MAX`] and a chunk for each of its streams; a chunk is 16 KiB,
//! or a single object that is larger.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use ringwatch::budget::{Account, Ledger, Share};
use ringwatch::clock::Clock;

use super::body::{Body, BoxError, SharedEvents, full};

/// The most bytes that may be pending on a connection before its bodies wait.
pub(super) const OUTGOING_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a connection while nothing is pending: its task, the state of TLS and HTTP.
const CONNECTION_BYTES: u64 = 16 << 10;

/// Bytes that the layers below may hold of a connection whose client does not read: the joined writes and TLS' own
/// buffer.
const BELOW_BYTES: u64 = 80 << 10;

/// The step in which pending bytes are reported to the ledger. A connection that keeps up stays within the first one,
/// which costs nothing.
const STEP_BYTES: u64 = 16 << 10;

/// The least bytes of a response that a client must read within the timeout of a request; else its connection ends.
const READ_BYTES_MIN: u64 = 1 << 20;

/// The number of times that a connection is checked within the time after which it counts as idle.
const IDLE_LOOKS: u32 = 3;

/// The bytes that a connection holds for its client. Clones are of the same connection.
#[derive(Clone, Debug)]
pub(super) struct Outgoing(Arc<Mutex<Pending>>);

#[derive(Debug)]
struct Pending {
    /// The bytes that hyper holds.
    bytes: u64,
    /// The connection's share of the memory budget.
    share: Share,
    /// Bodies that wait, at most one entry for each task.
    waiting: Vec<Waker>,
    /// Answers that must be read in time and are not written to their end, by the number of their stream.
    answers: HashMap<u64, AnswerProgress>,
    /// The number of requests whose answer is not written to its end.
    streams: usize,
    /// The number of requests that the connection has had.
    begun: u64,
}

/// The progress of the client in reading an answer, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerProgress {
    pending: u64,
    taken: u64,
}

impl Outgoing {
    /// Starts the account of a new connection, on which nothing is pending.
    #[must_use]
    pub(super) fn new(ledger: &Ledger) -> Self {
        let mut share = ledger.share(Account::Connections);
        share.set(CONNECTION_BYTES);
        Self(Arc::new(Mutex::new(Pending {
            bytes: 0,
            share,
            waiting: Vec::new(),
            answers: HashMap::new(),
            streams: 0,
            begun: 0,
        })))
    }

    /// Notes that a request has come. It is in progress until its answer is written or dropped.
    #[must_use]
    pub(super) fn begin(&self) -> Answering {
        let mut pending = self.lock();
        pending.streams += 1;
        pending.begun += 1;
        let number = pending.begun;
        drop(pending);
        Answering(Arc::new(OutgoingStream {
            connection: self.clone(),
            number,
        }))
    }

    /// Returns how many requests are in progress.
    #[must_use]
    pub(super) fn in_progress(&self) -> usize {
        self.lock().streams
    }

    /// Returns a share of the account that connections spend from.
    #[must_use]
    pub(super) fn share(&self) -> Share {
        self.lock().share.another()
    }

    /// Completes when no request has been in progress for so long, or for up to a third longer.
    pub(super) async fn idle(&self, clock: &Clock, at_least: Duration) {
        let mut quiet = 0;
        let mut begun = None;
        while quiet < IDLE_LOOKS {
            clock.sleep(at_least / IDLE_LOOKS).await;
            let pending = self.lock();
            let same = pending.streams == 0 && begun == Some(pending.begun);
            quiet = if same { quiet + 1 } else { 0 };
            begun = (pending.streams == 0).then_some(pending.begun);
        }
    }

    /// Completes when the client has read less than `READ_BYTES_MIN` within `at_most` of an answer that is no stream,
    /// such as a watch, though more of it is pending. It would hold its place among the requests in flight, and its
    /// memory, for as long as the client likes; kube-apiserver ends such answers with the time of their request. hyper
    /// lets nobody reset a single stream for which the client gives no window, so the connection has to go.
    pub(super) async fn abandoned(&self, clock: &Clock, at_most: Duration) {
        let mut before = HashMap::new();
        loop {
            clock.sleep(at_most).await;
            let unread = self.unread();
            let is_slow = |(number, taken): (&u64, &u64)| {
                let earlier = before.get(number);
                earlier.is_some_and(|earlier| taken - earlier < READ_BYTES_MIN)
            };
            if unread.iter().any(is_slow) {
                return;
            }
            before = unread;
        }
    }

    /// Returns the bytes taken of each answer of which more is pending.
    fn unread(&self) -> HashMap<u64, u64> {
        let pending = self.lock();
        let unread = pending.answers.iter().filter(|(_, it)| it.pending > 0);
        unread.map(|(number, it)| (*number, it.taken)).collect()
    }

    /// Returns the number of bytes that are pending.
    #[cfg(test)]
    pub(super) fn pending(&self) -> u64 {
        self.lock().bytes
    }

    /// Completes when there is room.
    fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut pending = self.lock();
        if pending.bytes < OUTGOING_BYTES_MAX {
            return Poll::Ready(());
        }
        let waker = context.waker();
        if !pending.waiting.iter().any(|known| known.will_wake(waker)) {
            pending.waiting.push(waker.clone());
        }
        Poll::Pending
    }

    fn add(&self, stream: u64, bytes: usize) {
        let mut pending = self.lock();
        pending.bytes += bytes as u64;
        if let Some(answer) = pending.answers.get_mut(&stream) {
            answer.pending += bytes as u64;
        }
        pending.report();
    }

    fn subtract(&self, stream: u64, bytes: usize) {
        let mut pending = self.lock();
        pending.bytes -= bytes as u64;
        if let Some(answer) = pending.answers.get_mut(&stream) {
            answer.pending -= bytes as u64;
            answer.taken += bytes as u64;
        }
        pending.report();
        if pending.bytes >= OUTGOING_BYTES_MAX {
            return;
        }
        let waiting = std::mem::take(&mut pending.waiting);
        drop(pending);
        waiting.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn report(&mut self) {
        let held = if self.bytes <= STEP_BYTES {
            CONNECTION_BYTES
        } else {
            CONNECTION_BYTES + BELOW_BYTES + self.bytes.next_multiple_of(STEP_BYTES)
        };
        self.share.set(held);
    }
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct Answering(Arc<OutgoingStream>);

impl Answering {
    /// Wraps the response's body, whose chunks count as pending until they are written.
    #[must_use]
    pub(super) fn count(self, inner: Body) -> CountedBody {
        if inner.ends_by_itself() {
            let stream = &self.0;
            let mut pending = stream.connection.lock();
            pending
                .answers
                .insert(stream.number, AnswerProgress::default());
        }
        CountedBody {
            inner,
            stream: self.0,
            alone: false,
            shared: None,
            waiting: None,
        }
    }
}

/// One stream of a connection, shared by its body and its pending chunks: as long as there is more
/// than one reference, something is pending.
#[derive(Debug)]
struct OutgoingStream {
    connection: Outgoing,
    /// The number of the request on its connection.
    number: u64,
}

/// A body whose chunks count as pending until they are written.
#[derive(Debug)]
pub(super) struct CountedBody {
    /// The body that the chunks come from.
    inner: Body,
    /// The stream that it belongs to.
    stream: Arc<OutgoingStream>,
    /// True if a chunk is asked for only when the last has been written: small ones are then not counted.
    alone: bool,
    /// The events of a watch, if it can follow others.
    shared: Option<Arc<dyn SharedEvents>>,
    /// The waker of a body that waits for room.
    waiting: Option<Waker>,
}

/// A chunk that counts as pending until it is dropped.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The bytes that are left to write.
    bytes: Bytes,
    /// The count of its bytes; `None` if it is so small that the connection's share covers it.
    counted: Option<PendingBytes>,
}

/// Bytes that are pending until it is dropped.
#[derive(Debug)]
struct PendingBytes {
    bytes: usize,
    stream: Arc<OutgoingStream>,
}

impl HttpBody for CountedBody {
    type Data = Chunk;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BoxError>>> {
        let idle = self.alone || Arc::strong_count(&self.stream) == 1;
        if !idle && self.stream.connection.poll_room(context).is_pending() {
            self.waiting = Some(context.waker().clone());
            return Poll::Pending;
        }
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map(|it| it.map_data(|data| self.chunk(data)))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl CountedBody {
    /// Has small chunks not counted one by one, because there is only one at a time.
    #[must_use]
    pub(super) fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Says what the events of the body are, if it can follow others.
    #[must_use]
    pub(super) fn sharing(mut self, shared: Option<Arc<dyn SharedEvents>>) -> Self {
        self.shared = shared;
        self
    }

    /// Returns the events of the body, if it can follow others.
    pub(super) fn shared(&self) -> Option<&Arc<dyn SharedEvents>> {
        self.shared.as_ref()
    }

    /// Has all chunks counted: undoes [`Self::alone`].
    #[must_use]
    pub(super) fn among_others(mut self) -> Self {
        self.alone = false;
        self
    }

    /// Counts a chunk of this body that was too small for it, since it is not written at once.
    pub(super) fn hold(&self, chunk: &mut Chunk) {
        if chunk.counted.is_none() {
            chunk.counted = Some(self.stream.hold(chunk.bytes.len()));
        }
    }

    /// Drops the content, and what the request holds for it.
    #[must_use]
    pub(super) fn emptied(mut self) -> Self {
        self.inner = Body::from(full(Bytes::new()));
        self
    }

    /// Completes when the response is to end since the server does.
    pub(super) async fn told_to_end(&mut self) {
        self.inner.told_to_end().await;
    }

    /// Returns bytes as a chunk of this body.
    pub(super) fn chunk(&self, bytes: Bytes) -> Chunk {
        let small = self.alone && bytes.len() as u64 <= STEP_BYTES;
        let counted = (!small).then(|| self.stream.hold(bytes.len()));
        Chunk { bytes, counted }
    }
}

impl Drop for CountedBody {
    /// Forgets the stream's waker: one that is reset while it waits does not wait any more.
    fn drop(&mut self) {
        if let Some(own) = &self.waiting {
            let mut pending = self.stream.connection.lock();
            pending.waiting.retain(|waker| !waker.will_wake(own));
        }
    }
}

impl Drop for OutgoingStream {
    fn drop(&mut self) {
        let mut pending = self.connection.lock();
        pending.streams -= 1;
        pending.answers.remove(&self.number);
    }
}

impl OutgoingStream {
    fn hold(self: &Arc<Self>, bytes: usize) -> PendingBytes {
        self.connection.add(self.number, bytes);
        PendingBytes {
            bytes,
            stream: Arc::clone(self),
        }
    }
}

impl Chunk {
    /// Returns a chunk without bytes.
    pub(super) fn empty() -> Self {
        Self {
            bytes: Bytes::new(),
            counted: None,
        }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }

    fn copy_to_bytes(&mut self, len: usize) -> Bytes {
        self.bytes.copy_to_bytes(len)
    }
}

impl Drop for PendingBytes {
    fn drop(&mut self) {
        let stream = &self.stream;
        stream.connection.subtract(stream.number, self.bytes);
    }
}

#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
#[cfg(test)]
mod tests;
