//! A list as a response body that is built while it is sent.
//!
//! In the stored form an item is its object's own bytes with the version in between; in other forms it is encoded when
//! it is sent, unless its encoding is cached. So a list costs one pointer for each object and one chunk of memory. Its
//! length must be sent first, which takes a first pass over the items. Those of a long list that have no room in the
//! cache are encoded in both passes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch_http::BoxError;

use super::encoder::{Encoder, What};
use crate::errors::Failure;
use crate::negotiation::Format;

/// Number of bytes of a chunk. Longer items are sent as they are.
const LIST_CHUNK_BYTES: usize = 32 * 1024;

/// JSON, whose items come without their opening braces.
const JSON: Punctuation = Punctuation {
    first: b"{",
    next: b",{",
    end: b"]}\n",
};

/// Protobuf, whose items come as whole fields.
const PROTOBUF: Punctuation = Punctuation {
    first: b"",
    next: b"",
    end: codec::LIST_END,
};

/// The bytes around the items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Punctuation {
    /// The bytes before the first item.
    pub(super) first: &'static [u8],
    /// The bytes before every other item.
    pub(super) next: &'static [u8],
    /// The bytes after the last item.
    pub(super) end: &'static [u8],
}

impl Punctuation {
    pub(super) fn of(format: Format) -> Self {
        match format {
            Format::Protobuf => PROTOBUF,
            Format::Json | Format::PrettyJson | Format::Yaml => JSON,
        }
    }
}

/// A list's response body, which encodes its items while it is sent.
#[derive(Debug)]
pub(crate) struct ListBody {
    encoder: Encoder,
    items: std::vec::IntoIter<Arc<Object>>,
    /// The number of items that are still to come and have been cached.
    cached: usize,
    /// Bytes to send before anything else is read.
    pending: BytesMut,
    /// An item that did not fit into the last chunk.
    waiting: Option<Bytes>,
    /// True once an item has been sent.
    begun: bool,
    around: Punctuation,
    /// True once the end has been sent.
    ended: bool,
    /// The number of bytes of the body that are still to come.
    remaining: u64,
}

impl ListBody {
    /// Creates the body of a list of these objects. `head` writes all that comes before the items, whose length it is
    /// given.
    ///
    /// # Errors
    /// 500 when an object cannot be converted or written.
    pub(crate) async fn new(
        encoder: Encoder,
        items: Vec<Arc<Object>>,
        head: impl FnOnce(usize) -> Vec<u8>,
    ) -> Result<Self, Failure> {
        let around = Punctuation::of(encoder.format());
        let separators = match items.len() {
            0 => 0,
            items => around.first.len() + (items - 1) * around.next.len(),
        };
        let length = encoder.items_length(&items).await?;
        let head = head(length.bytes);
        let total = head.len() + length.bytes + separators + around.end.len();
        Ok(Self {
            encoder,
            items: items.into_iter(),
            cached: length.cached,
            pending: BytesMut::from(&head[..]),
            waiting: None,
            begun: false,
            around,
            ended: false,
            remaining: total as u64,
        })
    }

    /// Encodes the next chunk; empty at the end.
    fn next_chunk(&mut self) -> Result<Bytes, Failure> {
        if let Some(item) = self.waiting.take() {
            if item.len() >= LIST_CHUNK_BYTES {
                return Ok(item);
            }
            self.pending.reserve(LIST_CHUNK_BYTES);
            self.pending.extend_from_slice(&item);
        } else {
            let room = LIST_CHUNK_BYTES.saturating_sub(self.pending.len());
            self.pending.reserve(room);
        }
        while !self.ended && self.waiting.is_none() {
            self.append_next()?;
        }
        Ok(self.pending.split().freeze())
    }

    /// Writes the next item, or keeps it for the next chunk if there is no room; after the last item, the end.
    fn append_next(&mut self) -> Result<(), Failure> {
        let Some(object) = self.items.next() else {
            self.ended = true;
            self.pending.extend_from_slice(self.around.end);
            return Ok(());
        };
        let is_cached = self.cached > 0;
        self.cached = self.cached.saturating_sub(1);
        let separator = if self.begun {
            self.around.next
        } else {
            self.around.first
        };
        self.pending.extend_from_slice(separator);
        self.begun = true;
        let item = match self.encoder.stored_item(&object) {
            Some(item) => {
                self.pending.extend_from_slice(&item.head);
                item.body.put_head(&mut self.pending);
                let rest = item.body.rest();
                if rest.len() <= LIST_CHUNK_BYTES.saturating_sub(self.pending.len()) {
                    self.pending.extend_from_slice(rest);
                    return Ok(());
                }
                object.stored().slice_ref(rest)
            }
            None if is_cached => self.encoder.encode(What::Item, &object)?,
            None => self.encoder.encode_item_once(&object)?,
        };
        if item.len() <= LIST_CHUNK_BYTES.saturating_sub(self.pending.len()) {
            self.pending.extend_from_slice(&item);
        } else {
            self.waiting = Some(item);
        }
        Ok(())
    }
}

impl Body for ListBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let chunk = match self.next_chunk() {
            Ok(chunk) => chunk,
            // Encoding it succeeded when the length was computed.
            Err(failure) => return Poll::Ready(Some(Err(failure.status().message.clone().into()))),
        };
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
