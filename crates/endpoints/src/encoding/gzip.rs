//! Compresses a body with gzip while it is sent, chunk by chunk.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body, Frame};
use ringwatch_http::{BoxError, ResponseBody};

/// Minimum size of a response to be compressed, in bytes.
pub(crate) const GZIP_MIN_BYTES: u64 = 128 * 1024;

/// kube-apiserver's level: the fastest.
pub(super) const GZIP_LEVEL: u32 = 1;

/// Number of bytes that are compressed before they are sent.
pub(super) const GZIP_CHUNK_BYTES: usize = 16 * 1024;

/// Maximum number of bytes that are compressed before other requests of the thread go on.
const GZIP_PLAIN_BYTES_MAX: usize = 64 * 1024;

/// A response body that is compressed with gzip while it is sent.
pub(crate) struct GzipBody {
    plain: ResponseBody,
    /// The rest of a frame of it.
    frame: Bytes,
    /// `None` after the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl GzipBody {
    /// Wraps a body, which is read and compressed in chunks of [`GZIP_CHUNK_BYTES`].
    pub(crate) fn new(plain: ResponseBody) -> Self {
        Self {
            plain,
            frame: Bytes::new(),
            encoder: Some(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))),
        }
    }

    /// Compresses bytes, and returns the compressed ones once they are enough to be sent.
    fn compress(&mut self, plain: &[u8]) -> Option<Result<Frame<Bytes>, BoxError>> {
        let encoder = self.encoder.as_mut()?;
        if let Err(error) = encoder.write_all(plain) {
            return Some(Err(error.into()));
        }
        let is_enough = encoder.get_ref().len() >= GZIP_CHUNK_BYTES;
        is_enough.then(|| Ok(Frame::data(std::mem::take(encoder.get_mut()).into())))
    }

    /// Returns the last compressed bytes.
    fn finish(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        let rest = self.encoder.take()?.finish();
        Some(
            rest.map(|rest| Frame::data(rest.into()))
                .map_err(Into::into),
        )
    }
}

impl Body for GzipBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let mut left = GZIP_PLAIN_BYTES_MAX;
        while this.encoder.is_some() {
            if this.frame.is_empty() {
                match ready!(Pin::new(&mut this.plain).poll_frame(context)) {
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Some(Ok(frame)) => this.frame = frame.into_data().unwrap_or_default(),
                    None => return Poll::Ready(this.finish()),
                }
            }
            let part = this.frame.split_to(left.min(this.frame.len()));
            left -= part.len();
            if let Some(compressed) = this.compress(&part) {
                return Poll::Ready(Some(compressed));
            }
            if left == 0 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(None)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http_body_util::BodyExt;
    use ringwatch_http::full;

    use super::*;

    #[tokio::test]
    async fn what_goes_in_comes_out() {
        let text = "ringwatch ".repeat(50_000);
        let body = GzipBody::new(full(text.clone()));
        let bytes = body.collect().await.expect("a body").to_bytes();
        assert!(bytes.len() < text.len() / 10);
        let mut found = String::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut found)
            .expect("gzip");
        assert_eq!(found, text);
    }

    #[tokio::test]
    async fn others_go_on_while_a_body_is_compressed_that_gives_little() {
        let mut body = GzipBody::new(full(vec![b'x'; 10 * GZIP_PLAIN_BYTES_MAX]));
        let mut polls = 0;
        let chunk = loop {
            polls += 1;
            if let Poll::Ready(chunk) = futures::poll!(body.frame()) {
                break chunk;
            }
        };
        assert!(chunk.is_some_and(|it| it.is_ok()));
        assert_eq!(polls, 11);
        assert!(body.frame().await.is_none());
    }
}
