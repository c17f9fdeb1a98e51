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

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, SizeHint};

use crate::budget::{Account, Ledger, Share};
use crate::endpoints::{BoxError, ResponseBody};

/// So much may be pending on a connection; then its bodies wait.
pub const OUTGOING_BYTES_MAX: u64 = 1 << 20;

/// What a connection takes while nothing is pending: its task, the state of TLS and HTTP.
const CONNECTION_BYTES: u64 = 16 << 10;

/// What the layers below may hold of a connection whose client does not read: the joined writes and
/// TLS' own buffer.
const BELOW_BYTES: u64 = 80 << 10;

/// The ledger is told of pending bytes in steps of so many. A connection that keeps up stays within
/// the first one, and the ledger is left alone.
const STEP_BYTES: u64 = 16 << 10;

/// What a connection holds for its client. Clones are of the same connection.
#[derive(Clone, Debug)]
pub struct Outgoing(Arc<Mutex<Pending>>);

#[derive(Debug)]
struct Pending {
    /// What hyper holds, in bytes.
    bytes: u64,
    /// What the connection has of the memory budget.
    share: Share,
    /// Bodies that wait, at most one entry for each task.
    waiting: Vec<Waker>,
}

impl Outgoing {
    /// Nothing is pending.
    #[must_use]
    pub fn new(ledger: &Ledger) -> Self {
        let mut share = ledger.share(Account::Connections);
        share.set(CONNECTION_BYTES);
        Self(Arc::new(Mutex::new(Pending {
            bytes: 0,
            share,
            waiting: Vec::new(),
        })))
    }

    /// A body whose chunks count as pending until they are written.
    #[must_use]
    pub fn count(&self, inner: ResponseBody) -> CountedBody {
        let stream = Arc::new(Stream(self.clone()));
        CountedBody { inner, stream }
    }

    /// How many bytes are pending.
    #[must_use]
    pub fn pending(&self) -> u64 {
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

    fn add(&self, bytes: usize) {
        let mut pending = self.lock();
        pending.bytes += bytes as u64;
        pending.tell();
    }

    fn subtract(&self, bytes: usize) {
        let mut pending = self.lock();
        pending.bytes -= bytes as u64;
        pending.tell();
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
    fn tell(&mut self) {
        let held = if self.bytes <= STEP_BYTES {
            CONNECTION_BYTES
        } else {
            CONNECTION_BYTES + BELOW_BYTES + self.bytes.next_multiple_of(STEP_BYTES)
        };
        self.share.set(held);
    }
}

/// One stream of a connection, shared by its body and its pending chunks: as long as there is more
/// than one reference, something is pending.
#[derive(Debug)]
struct Stream(Outgoing);

/// A body whose chunks count as pending until they are written.
#[derive(Debug)]
pub struct CountedBody {
    /// Where the chunks come from.
    inner: ResponseBody,
    /// What they count for.
    stream: Arc<Stream>,
}

/// A chunk that counts as pending until it is dropped.
#[derive(Debug)]
pub struct Chunk {
    /// What is left to write.
    bytes: Bytes,
    /// How many bytes it counts.
    counted: usize,
    /// What it counts for.
    stream: Arc<Stream>,
}

impl Body for CountedBody {
    type Data = Chunk;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BoxError>>> {
        let idle = Arc::strong_count(&self.stream) == 1;
        if !idle && self.stream.0.poll_room(context).is_pending() {
            return Poll::Pending;
        }
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(context));
        let stream = &self.stream;
        Poll::Ready(frame.map(|frame| frame.map(|it| it.map_data(|data| stream.chunk(data)))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Stream {
    fn chunk(self: &Arc<Self>, bytes: Bytes) -> Chunk {
        let counted = bytes.len();
        self.0.add(counted);
        Chunk {
            bytes,
            counted,
            stream: Arc::clone(self),
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

impl Drop for Chunk {
    fn drop(&mut self) {
        self.stream.0.subtract(self.counted);
    }
}

#[cfg(test)]
mod tests;
