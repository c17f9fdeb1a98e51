//! Writes the response to a watch over HTTP/1.1 without hyper.
//!
//! ```text
//!   hyper --request--> service --> a watch's answer --> hand-over
//!     |                                                    |
//!     +-- gives back the I/O, drops its buffers --> head, chunk, chunk, ... end --> hyper again
//! ```
//!
//! Most responses of such a server are watches, and on HTTP/1.1 each has a connection of its own. hyper polls a body
//! three times for each event and keeps 16 KiB of buffers, nearly all of it idle; with thousands of connections the
//! cost is the memory that is touched. So hyper reads the request, and the service answers it as any other; then the
//! connection is taken from hyper, the chunks are written here, and after the watch hyper gets it back.
//!
//! # What keeps the bytes in order
//!
//! Bytes that hyper has not written yet would be lost. It has written everything when it is asked for an answer, unless
//! the client sends requests without reading the answers. Then the socket takes no more, which [`WriteBacklog`] notes,
//! and the watch stays with hyper.

use std::future::Future;
use std::io::{self, Cursor, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Buf;
use bytes::buf::{Chain, Take};
use http::header::{DATE, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, Response};
use hyper::body::Body;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use ringwatch::clock::{Clock, Instant, Timer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_util::io::poll_write_buf;

use super::body::{BoxError, EventStream};
use super::doorbell::Doorbell;
use super::layered_io::IoLayer;

/// Maximum length of the line before a chunk: hexadecimal digits and CRLF.
const SIZE_LINE_BYTES_MAX: usize = 18;

/// The end of a chunk.
const CHUNK_END: &[u8] = b"\r\n";

/// The end of the body.
const BODY_END: &[u8] = b"0\r\n\r\n";

/// The time after the end of the watch when the connection of a client is closed that does not read.
const READING_MAX: Duration = Duration::from_secs(30);

/// The state of a connection after its watch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The body is written to its end, and the next request may come.
    Whole,
    /// The client has gone, or has sent something during the watch.
    Gone,
}

/// Writes the head of an answer whose body comes bit by bit, and gives what writes the body.
///
/// # Errors
/// Those of the connection, and that its client does not read. Nothing more can be written to it then.
pub(super) async fn begin<T, B>(
    mut io: T,
    answer: Response<B>,
    clock: &Clock,
) -> Result<Delivery<T, B>, BoxError>
where
    T: AsyncRead + AsyncWrite + Unpin,
    B: Body<Error = BoxError> + Unpin,
{
    let watch = answer.extensions().get::<EventStream>();
    let deadline = watch.map(|watch| watch.deadline + READING_MAX);
    let chunked = HeaderValue::from_static("chunked");
    let own = [(TRANSFER_ENCODING, chunked)];
    let head = head(&answer, &own, clock.wall())?;
    write_head(&mut io, &head, clock).await?;
    Ok(Delivery {
        io,
        body: answer.into_body(),
        heard: Doorbell::default(),
        unasked: false,
        ending: None,
        deadline,
        stalled: None,
        clock: clock.clone(),
        writing: None,
    })
}

/// Writes the head of an answer. Nobody looks at the deadline of its request meanwhile, hence one of its own.
///
/// # Errors
/// Those of the connection, and that its client does not read for [`READING_MAX`].
pub(super) async fn write_head<T>(io: &mut T, head: &[u8], clock: &Clock) -> io::Result<()>
where
    T: AsyncWrite + Unpin,
{
    let written = async {
        io.write_all(head).await?;
        io.flush().await
    };
    tokio::select! {
        written = written => written,
        () = clock.sleep(READING_MAX) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Encodes the head of a response, with headers that it does not have itself.
///
/// # Errors
/// The time cannot be written.
pub(super) fn head<B>(
    answer: &Response<B>,
    own: &[(HeaderName, HeaderValue)],
    now: Timestamp,
) -> Result<Vec<u8>, BoxError> {
    let status = answer.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = Vec::new();
    write!(head, "HTTP/1.1 {} {reason}\r\n", status.as_str())?;
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now)?;
    let date = HeaderValue::try_from(date)?;
    let own = own.iter().map(|(name, value)| (name, value));
    let own = own.chain([(&DATE, &date)]);
    for (name, value) in answer.headers().iter().chain(own) {
        write!(head, "{name}: ")?;
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Ok(head)
}

/// A chunk with its length before it and its end behind it.
type FramedChunk<D> = Chain<Chain<Take<Cursor<[u8; SIZE_LINE_BYTES_MAX]>>, D>, &'static [u8]>;

fn framed<D: Buf>(data: D) -> io::Result<FramedChunk<D>> {
    let mut line = Cursor::new([0; SIZE_LINE_BYTES_MAX]);
    write!(line.get_mut().as_mut_slice(), "{:x}\r\n", data.remaining())?;
    let mut length = 0;
    while line.get_ref()[length] != b'\n' {
        length += 1;
    }
    Ok(line.take(length + 1).chain(data).chain(CHUNK_END))
}

/// The body while it is being written.
///
/// The fields that each event touches are adjacent.
pub(super) struct Delivery<T, B: Body> {
    io: T,
    body: B,
    /// A waker that notices when the client sends something or closes the connection.
    heard: Doorbell,
    /// True if the client has sent something, after which nothing more is read.
    unasked: bool,
    /// The part of the last chunk that is left to write, once the body has ended.
    ending: Option<&'static [u8]>,
    /// The part of a chunk that is left to write.
    writing: Option<FramedChunk<B::Data>>,
    /// Wakes the task at the deadline, while the client does not read.
    stalled: Option<Timer>,
    /// The time at which the connection of a client is closed that does not read. The body, which has a deadline of its
    /// own, is not polled while it cannot be written.
    deadline: Option<Instant>,
    clock: Clock,
}

impl<T, B: Body> std::fmt::Debug for Delivery<T, B> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Delivery").finish_non_exhaustive()
    }
}

impl<T, B> Delivery<T, B>
where
    T: AsyncRead + AsyncWrite + Unpin,
    B: Body<Error = BoxError> + Unpin,
{
    /// Completes when the body has ended or the client has gone.
    ///
    /// # Errors
    /// Those of the connection and of the body, and when the client has not read what was written
    /// until after the watch should have been over. Nothing more can be written then.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<StreamEnd, BoxError>> {
        loop {
            match self.poll_write(context) {
                Poll::Ready(written) => written?,
                Poll::Pending => return self.poll_stalled(context),
            }
            if self.ending.is_some() {
                // TLS may have accepted bytes that the socket has not.
                match Pin::new(&mut self.io).poll_flush(context) {
                    Poll::Ready(flushed) => flushed?,
                    Poll::Pending => return self.poll_stalled(context),
                }
                let ended = if self.unasked {
                    StreamEnd::Gone
                } else {
                    StreamEnd::Whole
                };
                return Poll::Ready(Ok(ended));
            }
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(frame)) => {
                    // No response has trailers.
                    let data = frame?.into_data().ok().filter(Buf::has_remaining);
                    self.writing = data.map(framed).transpose()?;
                }
                Poll::Ready(None) => self.ending = Some(BODY_END),
                Poll::Pending => {
                    ready!(Pin::new(&mut self.io).poll_flush(context))?;
                    return self.poll_gone(context);
                }
            }
        }
    }

    /// Returns the connection, to be read or closed by somebody else.
    pub(super) fn into_io(self) -> T {
        self.io
    }

    /// Writes what is left to write.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let io = Pin::new(&mut self.io);
        if let Some(framed) = &mut self.writing {
            ready!(poll_write_all(context, io, framed))?;
            self.writing = None;
            self.stalled = None;
        }
        match &mut self.ending {
            Some(end) => poll_write_all(context, Pin::new(&mut self.io), end),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Fails at the deadline. Until then the client may read on.
    fn poll_stalled(&mut self, context: &mut Context<'_>) -> Poll<Result<StreamEnd, BoxError>> {
        let Some(deadline) = self.deadline else {
            return Poll::Pending;
        };
        let clock = &self.clock;
        let timer = || clock.timer(deadline);
        ready!(Pin::new(self.stalled.get_or_insert_with(timer)).poll(context));
        Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    /// Completes when the client has closed the connection. If it pipelines a request during the watch, its connection
    /// is closed after the watch.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<Result<StreamEnd, BoxError>> {
        if self.unasked {
            return Poll::Pending;
        }
        let Some(waker) = self.heard.answer(context) else {
            return Poll::Pending;
        };
        let mut byte = [0];
        let mut read = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(&waker);
        ready!(Pin::new(&mut self.io).poll_read(&mut context, &mut read))?;
        if read.filled().is_empty() {
            return Poll::Ready(Ok(StreamEnd::Gone));
        }
        self.unasked = true;
        Poll::Pending
    }
}

fn poll_write_all<T: AsyncWrite>(
    context: &mut Context<'_>,
    mut io: Pin<&mut T>,
    bytes: &mut impl Buf,
) -> Poll<io::Result<()>> {
    while bytes.has_remaining() {
        if ready!(poll_write_buf(io.as_mut(), context, bytes))? == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
    }
    Poll::Ready(Ok(()))
}

/// An I/O layer that records if bytes wait to be written. Clones share the state.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteBacklog(Arc<AtomicBool>);

impl WriteBacklog {
    /// Returns true if the last write or flush is still pending.
    #[must_use]
    pub(super) fn is_waiting(&self) -> bool {
        // Relaxed: read and written by the connection's one task.
        self.0.load(Ordering::Relaxed)
    }
}

impl IoLayer for WriteBacklog {
    fn poll_out<R>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let polled = poll(context);
        // Relaxed: as in `is_waiting`.
        self.0.store(polled.is_pending(), Ordering::Relaxed);
        polled
    }
}

#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
#[cfg(test)]
mod tests;
