//! Batches the writes of all streams of an HTTP/2 connection into few writes to the socket.
//!
//! A write to a socket costs ten times as much as encoding its bytes, and hyper writes and flushes every DATA frame
//! separately. So frames are buffered above TLS, up to one TLS record, and written when the record is full or when the
//! connection's turn is over:
//!
//! ```text
//!   stream task --frame--> hyper --poll_write--> JoinedIo (16 KiB) ---> TLS ---> socket
//!   stream task --frame-->       --poll_flush--> (nothing)
//!                            ^                      ^
//!                            | polls                | then flushes
//!   woken --> gives way --> Turns ------------------+
//! ```
//!
//! The hard part is that the streams are tasks of their own: an event wakes all of them, and the
//! first one to run wakes the connection, which would run next and find a single frame. So the
//! connection first gives way, once, and polls hyper when the other tasks have had their turn. A
//! connection that is woken by something else meanwhile does not wait longer.
//!
//! The watches of an HTTP/2 connection are no tasks: [`super::watch_streams`] writes their frames into the same buffer
//! after hyper has had its turn, and hyper is polled only when something woke it. A connection with one stream does not
//! give way.
//!
//! Nothing gets stuck: hyper and the watches write only while [`Turns`] polls them, one after the other, and every such
//! poll ends with a flush. What the socket does not take stays here, and once 16 KiB do, hyper has to wait, and then
//! the streams. hyper itself ends a connection by `poll_shutdown`, which waits until all is out.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, ready};

use ringwatch::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::doorbell::Doorbell;
use super::watch_streams::body::Handovers;
use super::watch_streams::{ConnectionWatches, FrameProgress};

/// The most bytes that are gathered before they are written: a TLS record.
const JOINED_BYTES_MAX: usize = 16 * 1024;

/// The most bytes of the client that are read at once.
const READ_BYTES_MAX: usize = 4 * 1024;
/// The most times that the gathered bytes are written in one turn before other tasks have theirs.
const WRITES_A_TURN_MAX: usize = 64;

/// hyper's half of a joined connection. Its flush does nothing; [`Turns`] flushes.
#[derive(Debug)]
pub(super) struct JoinedIo<T> {
    /// Shared with [`Turns`], in the same task, so that the lock is always free.
    shared: Arc<Mutex<JoinedState<T>>>,
}

/// The driver's half: polls the connection turn by turn and flushes after each.
#[derive(Debug)]
pub(super) struct Turns<T> {
    /// The gathered bytes, which [`JoinedIo`] adds to.
    shared: Arc<Mutex<JoinedState<T>>>,
    /// True if the task has yielded since hyper was polled.
    gave_way: bool,
    /// Wakes the task for hyper's connection, which is polled only then.
    hyper: Doorbell,
}

/// Wraps an I/O object. The first half goes to hyper, the second drives hyper's connection.
///
/// With `handovers` the bytes are those of an HTTP/2 connection, and its watches are written here.
pub(super) fn join<T>(inner: T, handovers: Option<Handovers>) -> (JoinedIo<T>, Turns<T>) {
    let shared = Arc::new(Mutex::new(JoinedState {
        inner,
        gathered: Vec::new(),
        written: 0,
        unflushed: false,
        watches: handovers.map(ConnectionWatches::new),
        hyper_waits: false,
        received: VecDeque::new(),
    }));
    let io = JoinedIo {
        shared: Arc::clone(&shared),
    };
    let turns = Turns {
        shared,
        gave_way: false,
        hyper: Doorbell::default(),
    };
    (io, turns)
}

impl<T: AsyncWrite + Unpin> Turns<T> {
    /// Polls the connection to its end. May be dropped and called again.
    ///
    /// # Errors
    /// Those of writing; whatever else goes wrong is in what the connection says at its end.
    pub(super) async fn drive<C: Future>(
        &mut self,
        mut connection: Pin<&mut C>,
    ) -> io::Result<C::Output> {
        // The caller may have changed the connection, for instance to end it.
        self.hyper.ring();
        poll_fn(|context| self.poll(context, connection.as_mut())).await
    }

    fn poll<C: Future>(
        &mut self,
        context: &mut Context<'_>,
        mut connection: Pin<&mut C>,
    ) -> Poll<io::Result<C::Output>> {
        if !self.gave_way && self.is_joined_by_others() {
            self.gave_way = true;
            give_way(context);
            return Poll::Pending;
        }
        self.gave_way = false;
        loop {
            if let Some(waker) = self.hyper.answer(context) {
                // An end in order has waited for its last bytes; others cannot wait for a client that may be gone.
                let polled = connection.as_mut().poll(&mut Context::from_waker(&waker));
                if let Poll::Ready(output) = polled {
                    let _ = lock(&self.shared).poll_flush(context);
                    return Poll::Ready(Ok(output));
                }
            }
            let mut joined = lock(&self.shared);
            ready!(joined.poll_turn(context))?;
            if !joined.hyper_has_turn() {
                return Poll::Pending;
            }
            drop(joined);
            self.hyper.ring();
        }
    }

    /// Returns true if other tasks may have something to write at the same time.
    fn is_joined_by_others(&self) -> bool {
        let few = lock(&self.shared)
            .watches
            .as_ref()
            .is_some_and(ConnectionWatches::are_few);
        !few || self.hyper.has_rung()
    }
}

/// Has the task woken when the tasks that are due have run.
fn give_way(context: &mut Context<'_>) {
    let yielding = std::pin::pin!(tokio::task::yield_now());
    // It is never ready the first time, and leaves the waker with the scheduler.
    let _ = yielding.poll(context);
}

/// The state that both halves share.
#[derive(Debug)]
struct JoinedState<T> {
    inner: T,
    /// The bytes that hyper has written. Empty, without memory, while the connection is idle.
    gathered: Vec<u8>,
    /// The number of gathered bytes that `inner` has taken.
    written: usize,
    /// True if there are bytes, here or in `inner`, that have not been flushed.
    unflushed: bool,
    /// The watches that are written here; `None` for bytes that are not HTTP/2.
    watches: Option<ConnectionWatches>,
    /// True if hyper waits until the gathered bytes are written.
    hyper_waits: bool,
    /// Bytes for hyper for which its buffer had no room: those of one read, with the frames that [`ConnectionWatches`]
    /// adds. Usually empty.
    received: VecDeque<u8>,
}

impl<T: AsyncWrite + Unpin> JoinedState<T> {
    /// Takes bytes, as many as fit. A full buffer is written before more is taken.
    fn poll_gather(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if parts.iter().all(|part| part.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        loop {
            if self.gathered.capacity() == 0 {
                self.gathered.reserve_exact(JOINED_BYTES_MAX);
            }
            let taken = self.gather(parts);
            self.unflushed = true;
            if taken > 0 {
                return Poll::Ready(Ok(taken));
            }
            if self
                .watches
                .as_ref()
                .is_some_and(ConnectionWatches::has_turn)
            {
                self.hyper_waits = true;
                return Poll::Pending;
            }
            let written = self.poll_write_out(context);
            self.hyper_waits = written.is_pending();
            ready!(written)?;
        }
    }

    /// Takes bytes, as many as fit. Returns how many.
    fn gather(&mut self, parts: &[IoSlice<'_>]) -> usize {
        let mut taken = 0;
        for part in parts {
            let fits = if let Some(watches) = &mut self.watches {
                watches.pass(part, &mut self.gathered, JOINED_BYTES_MAX)
            } else {
                let fits = part.len().min(JOINED_BYTES_MAX - self.gathered.len());
                self.gathered.extend_from_slice(&part[..fits]);
                fits
            };
            taken += fits;
            if fits < part.len() {
                break;
            }
        }
        taken
    }

    /// Returns true, once, if hyper can go on: what it waited for is written, or there is something for it to read.
    fn hyper_has_turn(&mut self) -> bool {
        let refill = self
            .watches
            .as_mut()
            .is_some_and(ConnectionWatches::take_refill_due);
        std::mem::take(&mut self.hyper_waits) | refill
    }

    /// Writes what the watches have, then flushes. Other tasks have their turn before too much is written.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..WRITES_A_TURN_MAX {
            let Some(watches) = &mut self.watches else {
                return self.poll_flush(context);
            };
            let before = self.gathered.len();
            let progress = watches.write(context, &mut self.gathered, JOINED_BYTES_MAX);
            self.unflushed |= self.gathered.len() > before;
            if progress == FrameProgress::Done {
                return self.poll_flush(context);
            }
            ready!(self.poll_write_out(context))?;
            if self.hyper_waits {
                // Both have their turns, however much the watches have.
                return Poll::Ready(Ok(()));
            }
        }
        context.waker().wake_by_ref();
        self.poll_flush(context)
    }

    /// Writes all that is gathered.
    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.gathered.len() {
            let rest = &self.gathered[self.written..];
            let taken = ready!(Pin::new(&mut self.inner).poll_write(context, rest))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += taken;
        }
        self.gathered.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unflushed {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_write_out(context))?;
        ready!(Pin::new(&mut self.inner).poll_flush(context))?;
        self.gathered = Vec::new();
        self.unflushed = false;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for JoinedIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut joined = lock(&self.shared);
        let joined = &mut *joined;
        let Some(watches) = &mut joined.watches else {
            return Pin::new(&mut joined.inner).poll_read(context, buffer);
        };
        while joined.received.is_empty() {
            let mut received = Vec::from(std::mem::take(&mut joined.received));
            watches.refill(&mut received);
            if received.is_empty() {
                let mut bytes = [MaybeUninit::uninit(); READ_BYTES_MAX];
                let most = buffer.remaining().min(READ_BYTES_MAX);
                let mut read = ReadBuf::uninit(&mut bytes[..most]);
                ready!(Pin::new(&mut joined.inner).poll_read(context, &mut read))?;
                if read.filled().is_empty() {
                    return Poll::Ready(Ok(()));
                }
                watches.receive(read.filled(), &mut received)?;
            }
            joined.received = received.into();
        }
        let fits = joined.received.len().min(buffer.remaining());
        for part in [joined.received.as_slices().0, joined.received.as_slices().1] {
            buffer.put_slice(&part[..part.len().min(buffer.remaining())]);
        }
        joined.received.drain(..fits);
        if joined.received.is_empty() {
            joined.received = VecDeque::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for JoinedIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        lock(&self.shared).poll_gather(context, &[IoSlice::new(data)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        lock(&self.shared).poll_gather(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // h2 asks for it once it has written all that it holds.
        if let Some(watches) = &lock(&self.shared).watches {
            watches.h2_flushed();
        }
        // It comes at the end of the turn, whether hyper asks for it or not.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut joined = lock(&self.shared);
        let flushed = joined.poll_flush(context);
        joined.hyper_waits = flushed.is_pending();
        ready!(flushed)?;
        // hyper has ended the connection: no frame may follow.
        joined.watches = None;
        Pin::new(&mut joined.inner).poll_shutdown(context)
    }
}

fn lock<T>(shared: &Mutex<JoinedState<T>>) -> MutexGuard<'_, JoinedState<T>> {
    // A panic while it was held ends the connection anyway.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
