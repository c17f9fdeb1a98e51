//! Heads of HTTP/1.1 requests: counted while they are read, and kept small and short until the client is authenticated.
//!
//! hyper buffers a head until it is complete, and its limits of size and time are fixed when the connection begins. So
//! limits that depend on the authentication are enforced here, below hyper. The buffer doubles as it grows, so the next
//! power of two is counted.
//!
//! A fragment in a request's target is seen here as well: hyper drops it, and what follows it, so that another resource
//! would be meant than the client wrote. The head of a request that is sent before the one ahead of it is answered is
//! not looked at.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use ringwatch::budget::Share;
use ringwatch::clock::{Clock, Timer};
use tokio::io::{AsyncRead, ReadBuf};

use super::{ClientStanding, FIRST_HEAD_BYTES_MAX, FIRST_HEAD_MAX};
use crate::head_refusal::HeadRefusal;
use crate::layered_io::IoLayer;

/// The most bytes of a head that is covered by the memory that is counted for every connection.
const COVERED_BYTES: u64 = 8 << 10;

/// A connection's heads. Clones are of the same connection.
#[derive(Clone, Debug)]
pub(crate) struct Heads(Arc<Mutex<FirstHead>>);

/// The head that is being read.
#[derive(Debug)]
struct FirstHead {
    /// True while a head is read; false while a request's body is.
    reading: bool,
    /// The number of bytes of the head that have been read.
    bytes: u64,
    /// True once the line with the request's target has been read.
    has_target: bool,
    /// The share of the memory budget that covers the head.
    share: Share,
    /// The time at which a client that is not authenticated must have sent all of it.
    deadline: Option<Timer>,
    /// The reason why the connection ends, if it ends because of a head.
    refusal: Option<HeadRefusal>,
}

impl Heads {
    /// Spends from the account of a share.
    #[must_use]
    pub(crate) fn new(share: Share) -> Self {
        Self(Arc::new(Mutex::new(FirstHead {
            reading: true,
            bytes: 0,
            has_target: false,
            share,
            deadline: None,
            refusal: None,
        })))
    }

    /// Records that a head is complete and no longer buffered.
    pub(crate) fn end(&self) {
        let mut head = self.lock();
        head.reading = false;
        head.bytes = 0;
        head.has_target = false;
        head.share.set(0);
        head.deadline = None;
    }

    /// Records that the request is answered: the next bytes are another head.
    pub(crate) fn begin(&self) {
        self.lock().reading = true;
    }

    /// Returns the reason why the connection ended, if it ended because of a head that had begun to come.
    #[must_use]
    pub(crate) fn refusal(&self) -> Option<HeadRefusal> {
        let head = self.lock();
        head.refusal.filter(|_| head.bytes > 0)
    }

    fn lock(&self) -> MutexGuard<'_, FirstHead> {
        // A head is whole after each of its changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FirstHead {
    /// Counts bytes that have come.
    fn grow(&mut self, more: usize, standing: &ClientStanding) -> io::Result<()> {
        self.bytes += more as u64;
        let unknown = !standing.is_authenticated();
        if unknown && self.bytes > FIRST_HEAD_BYTES_MAX as u64 {
            self.refusal = Some(HeadRefusal::TooLarge);
            return Err(io::ErrorKind::InvalidData.into());
        }
        if self.bytes <= COVERED_BYTES {
            return Ok(());
        }
        let held = self.bytes.next_power_of_two();
        if unknown {
            let more = held - self.share.bytes();
            let admitted = self.share.admit(more);
            admitted.map_err(|exceeded| {
                self.refusal = Some(HeadRefusal::NoMemory);
                io::Error::other(exceeded)
            })
        } else {
            self.share.set(held);
            Ok(())
        }
    }

    /// Returns the place of a fragment in the request's target, as far as bytes that have come belong to that.
    fn fragment(&mut self, more: &[u8]) -> Option<usize> {
        if self.has_target {
            return None;
        }
        // Empty lines may precede the request.
        let start = more.iter().position(|it| !it.is_ascii_whitespace())?;
        let end = more[start..].iter().position(|it| *it == b'\n');
        self.has_target = end.is_some();
        let target = &more[..end.map_or(more.len(), |end| start + end)];
        target.iter().position(|it| *it == b'#')
    }

    /// Completes when a client that is not authenticated has taken too long.
    fn poll_late(&mut self, context: &mut Context<'_>, clock: &Clock) -> Poll<()> {
        let timer = || clock.timer(clock.now() + FIRST_HEAD_MAX);
        let deadline = self.deadline.get_or_insert_with(timer);
        std::task::ready!(Pin::new(deadline).poll(context));
        self.refusal = Some(HeadRefusal::Late);
        Poll::Ready(())
    }
}

/// The layer that sees a connection's heads and bodies as they are read.
#[derive(Debug)]
pub(crate) struct FirstHeads {
    heads: Heads,
    standing: ClientStanding,
    clock: Clock,
}

impl FirstHeads {
    /// Creates the layer of a connection.
    #[must_use]
    pub(crate) fn new(heads: &Heads, standing: &ClientStanding, clock: &Clock) -> Self {
        Self {
            heads: heads.clone(),
            standing: standing.clone(),
            clock: clock.clone(),
        }
    }
}

impl IoLayer for FirstHeads {
    fn poll_read<T: AsyncRead + Unpin>(
        &mut self,
        inner: Pin<&mut T>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.heads.lock().refusal == Some(HeadRefusal::Fragment) {
            // The end of what is read.
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        let polled = inner.poll_read(context, buffer);
        let mut head = self.heads.lock();
        if !head.reading {
            return polled;
        }
        match polled {
            Poll::Ready(Ok(())) => {
                if let Some(place) = head.fragment(&buffer.filled()[before..]) {
                    // hyper takes what is before it for a head that breaks off, and answers nothing.
                    head.refusal = Some(HeadRefusal::Fragment);
                    buffer.set_filled(before + place);
                }
                let more = buffer.filled().len() - before;
                Poll::Ready(head.grow(more, &self.standing))
            }
            Poll::Pending if !self.standing.is_authenticated() => head
                .poll_late(context, &self.clock)
                .map(|()| Err(io::ErrorKind::TimedOut.into())),
            polled => polled,
        }
    }
}
