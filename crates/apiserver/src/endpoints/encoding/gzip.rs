//! Compresses a body with gzip while it is sent, chunk by chunk.

use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body, Frame};

use crate::endpoints::body::{BoxError, ResponseBody};

/// Minimum size of a response to be compressed, in bytes.
pub(crate) const GZIP_MIN_BYTES: u64 = 128 * 1024;

/// kube-apiserver's level: the fastest.
pub(super) const GZIP_LEVEL: u32 = 1;

/// Number of bytes that are compressed before they are sent.
pub(super) const GZIP_CHUNK_BYTES: usize = 16 * 1024;

/// A response body that is compressed with gzip while it is sent.
pub(crate) struct GzipBody {
    plain: ResponseBody,
    /// `None` after the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl GzipBody {
    /// Wraps a body, which is read and compressed in chunks of [`GZIP_CHUNK_BYTES`].
    pub(crate) fn new(plain: ResponseBody) -> Self {
        Self {
            plain,
            encoder: Some(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))),
        }
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
        loop {
            let Some(encoder) = this.encoder.as_mut() else {
                return Poll::Ready(None);
            };
            let frame = std::task::ready!(Pin::new(&mut this.plain).poll_frame(context));
            let compressed = match frame {
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    if let Err(error) = encoder.write_all(&data) {
                        return Poll::Ready(Some(Err(error.into())));
                    }
                    if encoder.get_ref().len() < GZIP_CHUNK_BYTES {
                        continue;
                    }
                    std::mem::take(encoder.get_mut())
                }
                None => match this.encoder.take().map(GzEncoder::finish) {
                    Some(Ok(rest)) => rest,
                    Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                    None => return Poll::Ready(None),
                },
            };
            return Poll::Ready(Some(Ok(Frame::data(compressed.into()))));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use http_body_util::BodyExt;

    use super::*;
    use crate::endpoints::body::full;

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
}
