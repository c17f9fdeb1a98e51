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
//! Nothing gets stuck: hyper writes only while [`Turns`] polls it, and every such poll ends with a
//! flush. What the socket does not take stays here, and once 16 KiB do, hyper has to wait, and then
//! the streams. hyper itself ends a connection by `poll_shutdown`, which waits until all is out.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, ready};

use ringwatch::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes are gathered before they are written: a TLS record.
const JOINED_BYTES_MAX: usize = 16 * 1024;

/// hyper's half of a joined connection. Its flush does nothing; [`Turns`] flushes.
#[derive(Debug)]
pub(super) struct JoinedIo<T> {
    /// Shared with [`Turns`], in the same task, so that the lock is always free.
    shared: Arc<Mutex<Joined<T>>>,
}

/// The driver's half: polls the connection turn by turn and flushes after each.
#[derive(Debug)]
pub(super) struct Turns<T> {
    /// The gathered bytes, which [`JoinedIo`] adds to.
    shared: Arc<Mutex<Joined<T>>>,
    /// True if the task has yielded since hyper was polled.
    gave_way: bool,
}

/// Wraps an I/O object. The first half goes to hyper, the second drives hyper's connection.
pub(super) fn join<T>(inner: T) -> (JoinedIo<T>, Turns<T>) {
    let shared = Arc::new(Mutex::new(Joined {
        inner,
        gathered: Vec::new(),
        written: 0,
        unflushed: false,
    }));
    let io = JoinedIo {
        shared: Arc::clone(&shared),
    };
    let turns = Turns {
        shared,
        gave_way: false,
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
        poll_fn(|context| self.poll(context, connection.as_mut())).await
    }

    fn poll<C: Future>(
        &mut self,
        context: &mut Context<'_>,
        connection: Pin<&mut C>,
    ) -> Poll<io::Result<C::Output>> {
        if !self.gave_way {
            self.gave_way = true;
            give_way(context);
            return Poll::Pending;
        }
        self.gave_way = false;
        let polled = connection.poll(context);
        let flushed = lock(&self.shared).poll_flush(context);
        match (polled, flushed) {
            // An end in order has waited for its last bytes; others cannot wait for a client that
            // may be gone.
            (Poll::Ready(output), _) => Poll::Ready(Ok(output)),
            (Poll::Pending, Poll::Ready(Err(error))) => Poll::Ready(Err(error)),
            (Poll::Pending, _) => Poll::Pending,
        }
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
struct Joined<T> {
    inner: T,
    /// The bytes that hyper has written. Empty, without memory, while the connection is idle.
    gathered: Vec<u8>,
    /// How many of them `inner` has taken.
    written: usize,
    /// True if there are bytes, here or in `inner`, that have not been flushed.
    unflushed: bool,
}

impl<T: AsyncWrite + Unpin> Joined<T> {
    /// Takes bytes, as many as fit. A full buffer is written before more is taken.
    fn poll_gather(
        &mut self,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.gathered.len() == JOINED_BYTES_MAX {
            ready!(self.poll_write_out(context))?;
        }
        if self.gathered.capacity() == 0 {
            self.gathered.reserve_exact(JOINED_BYTES_MAX);
        }
        let before = self.gathered.len();
        for part in parts {
            let room = JOINED_BYTES_MAX - self.gathered.len();
            self.gathered
                .extend_from_slice(&part[..part.len().min(room)]);
        }
        self.unflushed = true;
        Poll::Ready(Ok(self.gathered.len() - before))
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
        Pin::new(&mut lock(&self.shared).inner).poll_read(context, buffer)
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
        // It comes at the end of the turn, whether hyper asks for it or not.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut joined = lock(&self.shared);
        ready!(joined.poll_flush(context))?;
        Pin::new(&mut joined.inner).poll_shutdown(context)
    }
}

fn lock<T>(shared: &Mutex<Joined<T>>) -> MutexGuard<'_, Joined<T>> {
    // A panic while it was held ends the connection anyway.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
