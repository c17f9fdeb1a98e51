//! A list as a body that is put together while it is sent.
//!
//! In JSON every item is a slice of its object's own bytes, so that a list costs a header and one
//! chunk of memory, however long it is. The length is known beforehand.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};

use super::super::body::BoxError;
use crate::codec;

/// How much is put together before it is handed on, in bytes. Items of this size go out as they are.
const LIST_CHUNK_BYTES: usize = 16 * 1024;

/// JSON, whose items come without their opening braces.
pub(crate) const JSON_LIST: Punctuation = Punctuation {
    first: b"{",
    next: b",{",
    end: b"]}\n",
};

/// Protobuf, whose items come as whole fields.
pub(crate) const PROTOBUF_LIST: Punctuation = Punctuation {
    first: b"",
    next: b"",
    end: codec::LIST_END,
};

/// What stands around the items.
#[derive(Clone, Copy)]
pub(crate) struct Punctuation {
    /// What precedes the first item.
    first: &'static [u8],
    /// What precedes every other.
    next: &'static [u8],
    /// What follows them all.
    end: &'static [u8],
}

/// A list.
pub(crate) struct ListBody {
    /// What goes out before anything else is read.
    pending: BytesMut,
    /// An item that is too large to be copied.
    large: Option<Bytes>,
    items: std::vec::IntoIter<Bytes>,
    /// Whether an item went out already.
    begun: bool,
    around: Punctuation,
    /// Whether the end went out.
    ended: bool,
    /// How many bytes are still to come.
    remaining: u64,
}

impl ListBody {
    /// A list that begins with `head`, which is everything before the items.
    pub(crate) fn new(head: &[u8], items: Vec<Bytes>, around: Punctuation) -> Self {
        let separators = match items.len() {
            0 => 0,
            items => around.first.len() + (items - 1) * around.next.len(),
        };
        let content: usize = items.iter().map(Bytes::len).sum();
        let total = head.len() + content + separators + around.end.len();
        Self {
            pending: BytesMut::from(head),
            large: None,
            items: items.into_iter(),
            begun: false,
            around,
            ended: false,
            remaining: total as u64,
        }
    }

    /// The next chunk; empty at the end.
    fn next_chunk(&mut self) -> Bytes {
        if let Some(large) = self.large.take() {
            return large;
        }
        while self.pending.len() < LIST_CHUNK_BYTES && !self.ended {
            let Some(item) = self.items.next() else {
                self.ended = true;
                self.pending.extend_from_slice(self.around.end);
                break;
            };
            let separator = if self.begun {
                self.around.next
            } else {
                self.around.first
            };
            self.pending.extend_from_slice(separator);
            self.begun = true;
            if item.len() >= LIST_CHUNK_BYTES {
                self.large = Some(item);
                break;
            }
            self.pending.extend_from_slice(&item);
        }
        self.pending.split().freeze()
    }
}

impl Body for ListBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let chunk = self.next_chunk();
        if chunk.is_empty() {
            return Poll::Ready(None);
        }
        self.remaining = self.remaining.saturating_sub(chunk.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    async fn written(items: Vec<Bytes>) -> String {
        let body = ListBody::new(b"{\"items\":[", items, JSON_LIST);
        let expected = body.size_hint().exact().expect("a length");
        let bytes = body.collect().await.expect("a body").to_bytes();
        assert_eq!(bytes.len() as u64, expected);
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn lengths_are_exact() {
        assert_eq!(written(vec![]).await, "{\"items\":[]}\n");
        let small = Bytes::from_static(b"\"a\":1}");
        assert_eq!(
            written(vec![small.clone(), small.clone()]).await,
            "{\"items\":[{\"a\":1},{\"a\":1}]}\n"
        );
        let large = Bytes::from(format!("\"a\":\"{}\"}}", "x".repeat(LIST_CHUNK_BYTES)));
        let text = written(vec![small.clone(), large.clone(), large, small]).await;
        let value: serde_json::Value = serde_json::from_str(&text).expect("json");
        assert_eq!(value["items"].as_array().map(Vec::len), Some(4));
    }
}
