//! The body of a list that is written while it is sent: as a table, as indented JSON or as YAML.
//!
//! Chunks are not kept, so the length of a long list is not known beforehand. A body too short for compression is
//! written at once, so that a short list has a length. The task yields between two chunks, since a fast client would
//! otherwise keep a thread busy.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use ringwatch::meta::Object;
use ringwatch_http::BoxError;
use serde_json::{Map, Value};

use super::encoder::{Encoder, What};
use super::gzip::GZIP_MIN_BYTES;
use super::indent::Indenter;
use super::table::Tables;
use super::yaml::{yaml_around, yaml_item};
use crate::errors::Failure;
use crate::negotiation::Format;

/// Number of bytes of a chunk, plus the rest of the last item.
const CHUNK_BYTES: usize = 32 * 1024;

/// The end of a list's JSON, behind its items.
const END: &[u8] = b"]}";

/// The form in which objects are items of the list.
#[derive(Debug)]
pub(crate) enum Items {
    /// Rows of a table.
    Rows(Tables),
    /// The objects as such.
    Objects(Encoder),
}

impl Items {
    /// Returns the name of the member of the list that has them.
    fn list(&self) -> &'static str {
        match self {
            Self::Rows(_) => "rows",
            Self::Objects(_) => "items",
        }
    }

    /// Encodes one item in JSON.
    fn json(&self, object: &Arc<Object>) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Rows(tables) => tables.row(object),
            Self::Objects(encoder) => match encoder.stored_item(object) {
                Some(item) => Ok([b"{", &*item.body.to_bytes()].concat()),
                None => Ok([b"{", &*encoder.encode(What::Item, object)?].concat()),
            },
        }
    }
}

/// The syntax in which a list is written.
#[derive(Debug)]
enum Syntax {
    Json,
    Pretty(Indenter),
    /// YAML, with the text after the items.
    Yaml(String),
}

/// The body of a list that is written while it is sent, an item at a time.
#[derive(Debug)]
pub(crate) struct PiecewiseBody {
    items: Items,
    syntax: Syntax,
    objects: std::vec::IntoIter<Arc<Object>>,
    /// Bytes that have been encoded and not yet sent.
    pending: Vec<u8>,
    /// True once an item has been written.
    begun: bool,
    /// True once the end has been written.
    ended: bool,
    /// True if a chunk has been handed on since the task last yielded.
    gives_way: bool,
}

impl PiecewiseBody {
    /// Creates the body of a list of these objects. `head` is the JSON before its items.
    ///
    /// # Errors
    /// 500 when one of the first objects cannot be converted or read.
    pub(crate) fn new(
        items: Items,
        format: Format,
        objects: Vec<Arc<Object>>,
        head: Vec<u8>,
    ) -> Result<Self, Failure> {
        let mut pending = Vec::new();
        let syntax = match format {
            // Protobuf lists are not written in pieces.
            Format::Json | Format::Protobuf => {
                pending = head;
                Syntax::Json
            }
            Format::PrettyJson => {
                let mut indenter = Indenter::default();
                indenter.write(&head, &mut pending);
                Syntax::Pretty(indenter)
            }
            Format::Yaml => {
                let without_items = [&*head, END].concat();
                let around: Map<String, Value> =
                    serde_json::from_slice(&without_items).map_err(Failure::internal)?;
                let (before, after) = yaml_around(&around, items.list(), objects.is_empty());
                pending = before.into_bytes();
                Syntax::Yaml(after)
            }
        };
        let mut body = Self {
            items,
            syntax,
            objects: objects.into_iter(),
            pending,
            begun: false,
            ended: false,
            gives_way: false,
        };
        body.write_up_to(usize::try_from(GZIP_MIN_BYTES).unwrap_or(usize::MAX))?;
        Ok(body)
    }

    /// Writes items until there are so many bytes, or no more items.
    fn write_up_to(&mut self, bytes: usize) -> Result<(), Failure> {
        while !self.ended && self.pending.len() < bytes {
            match self.objects.next() {
                Some(object) => self.write_item(&object)?,
                None => self.write_end(),
            }
        }
        Ok(())
    }

    fn write_item(&mut self, object: &Arc<Object>) -> Result<(), Failure> {
        let json = self.items.json(object)?;
        let separator: &[u8] = if self.begun { b"," } else { b"" };
        self.begun = true;
        match &mut self.syntax {
            Syntax::Json => {
                self.pending.extend_from_slice(separator);
                self.pending.extend(json);
            }
            Syntax::Pretty(indenter) => {
                indenter.write(separator, &mut self.pending);
                indenter.write_value(&json, &mut self.pending);
            }
            Syntax::Yaml(_) => {
                let item: Value = serde_json::from_slice(&json).map_err(Failure::internal)?;
                self.pending
                    .extend(yaml_item(&item, json.len()).into_bytes());
            }
        }
        Ok(())
    }

    fn write_end(&mut self) {
        self.ended = true;
        match &mut self.syntax {
            Syntax::Json => {
                self.pending.extend_from_slice(END);
                self.pending.push(b'\n');
            }
            Syntax::Pretty(indenter) => indenter.write(END, &mut self.pending),
            Syntax::Yaml(after) => self.pending.extend(std::mem::take(after).into_bytes()),
        }
    }
}

impl Body for PiecewiseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if std::mem::take(&mut self.gives_way) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Err(failure) = self.write_up_to(CHUNK_BYTES) {
            // The body breaks off: half a list must not look like a whole one.
            self.ended = true;
            self.pending.clear();
            return Poll::Ready(Some(Err(failure.status().message.clone().into())));
        }
        if self.pending.is_empty() {
            return Poll::Ready(None);
        }
        self.gives_way = !self.ended;
        let chunk = std::mem::take(&mut self.pending);
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.pending.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let written = self.pending.len() as u64;
        if self.ended {
            return SizeHint::with_exact(written);
        }
        let mut hint = SizeHint::new();
        hint.set_lower(written);
        hint
    }
}
