//! The first bytes of an HTTP/2 connection, read in bounded time before the protocol begins.
//!
//! hyper waits for the client's preface for ever, and asks for no sign of life meanwhile. So a
//! client that falls silent after the TLS handshake would hold its connection for good. The preface
//! is read here instead, and then handed to hyper as if it had just come.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// How long the preface is, whatever it says: hyper judges that.
pub(super) const PREFACE_BYTES: usize = 24;

/// A stream whose first bytes have been read already.
#[derive(Debug)]
pub struct Prefaced<T> {
    inner: T,
    preface: [u8; PREFACE_BYTES],
    /// How much of the preface has been handed over.
    handed_over: usize,
}

impl<T: AsyncRead + Unpin> Prefaced<T> {
    /// Reads the preface. The caller bounds the time.
    ///
    /// # Errors
    /// Those of the stream, and its end before the preface is complete.
    pub async fn read(mut inner: T) -> io::Result<Self> {
        let mut preface = [0; PREFACE_BYTES];
        inner.read_exact(&mut preface).await?;
        Ok(Self {
            inner,
            preface,
            handed_over: 0,
        })
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Prefaced<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let left = &this.preface[this.handed_over..];
        if left.is_empty() {
            return Pin::new(&mut this.inner).poll_read(context, buffer);
        }
        let fits = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..fits]);
        this.handed_over += fits;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Prefaced<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_read_first_is_read_again() {
        let sent: Vec<u8> = (0..100).collect();
        let mut stream = Prefaced::read(sent.as_slice()).await.expect("a preface");
        let mut few = [0; 7];
        stream.read_exact(&mut few).await.expect("bytes");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("bytes");
        assert_eq!([few.as_slice(), &rest].concat(), sent);
    }

    #[tokio::test]
    async fn a_stream_that_ends_early_has_no_preface() {
        let error = Prefaced::read(&[0; PREFACE_BYTES - 1][..]).await;
        assert_eq!(
            error.expect_err("too short").kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
}
