//! The first bytes of an HTTP/2 connection, read in bounded time before the protocol begins.
//!
//! hyper waits for the client's preface without a time limit, and sends no PING meanwhile. So a client that falls
//! silent after the TLS handshake would keep its connection open forever. The preface is read here instead, and then
//! handed to hyper as if it had just been received.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::layered_io::{IoLayer, LayeredIo};

/// The length of the preface in bytes; hyper checks its content.
pub(super) const PREFACE_BYTES: usize = 24;

/// The layer that hands over the first bytes of a stream, which have been read already.
#[derive(Debug)]
pub(super) struct Preface {
    bytes: [u8; PREFACE_BYTES],
    /// The number of bytes that have been handed over.
    handed_over: usize,
}

/// Reads the preface of a stream. The caller bounds the time.
///
/// # Errors
/// Those of the stream, and its end before the preface is complete.
pub(super) async fn read_preface<T>(mut stream: T) -> io::Result<LayeredIo<T, Preface>>
where
    T: AsyncRead + Unpin,
{
    let mut bytes = [0; PREFACE_BYTES];
    stream.read_exact(&mut bytes).await?;
    let preface = Preface {
        bytes,
        handed_over: 0,
    };
    Ok(LayeredIo::new(stream, preface))
}

impl IoLayer for Preface {
    fn poll_read<T: AsyncRead + Unpin>(
        &mut self,
        inner: Pin<&mut T>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = &self.bytes[self.handed_over..];
        if left.is_empty() {
            return inner.poll_read(context, buffer);
        }
        let fits = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..fits]);
        self.handed_over += fits;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_read_first_is_read_again() {
        let sent: Vec<u8> = (0..100).collect();
        let mut stream = read_preface(sent.as_slice()).await.expect("a preface");
        let mut few = [0; 7];
        stream.read_exact(&mut few).await.expect("bytes");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("bytes");
        assert_eq!([few.as_slice(), &rest].concat(), sent);
    }

    #[tokio::test]
    async fn a_stream_that_ends_early_has_no_preface() {
        let error = read_preface(&[0; PREFACE_BYTES - 1][..]).await;
        assert_eq!(
            error.expect_err("too short").kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
}
