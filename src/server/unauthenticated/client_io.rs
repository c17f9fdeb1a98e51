//! A socket that notes how long its client is waited for, until that has been authenticated.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Standing;
use super::standing::Direction;

/// A socket whose reads and writes count as waiting for the client while they are pending.
#[derive(Debug)]
pub struct ClientIo<T> {
    inner: T,
    standing: Standing,
}

impl<T: Unpin> ClientIo<T> {
    /// Wraps the socket of a connection.
    pub fn new(inner: T, standing: &Standing) -> Self {
        Self {
            inner,
            standing: standing.clone(),
        }
    }

    fn poll_out<R>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let inner = Pin::new(&mut self.inner);
        let poll = |context: &mut Context<'_>| poll(inner, context);
        self.standing.poll_socket(Direction::Out, context, poll)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ClientIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let inner = Pin::new(&mut this.inner);
        let poll = |context: &mut Context<'_>| inner.poll_read(context, buffer);
        this.standing.poll_socket(Direction::In, context, poll)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ClientIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_out(context, |inner, context| inner.poll_write(context, data))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_out(context, |inner, context| {
            inner.poll_write_vectored(context, parts)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_out(context, |inner, context| inner.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_out(context, |inner, context| inner.poll_shutdown(context))
    }
}
