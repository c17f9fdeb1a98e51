//! A list as a table, as a body that is written while it is sent.
//!
//! Rows are not kept, so the length of a long table is not known beforehand. What is not worth
//! compressing is written at once, so that a short table has a length and nobody else has to know
//! the difference. Rows cost time, so other tasks get their turn between two chunks: a client that
//! reads fast would else keep a thread to itself.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use serde_json::Value;

use super::super::body::BoxError;
use super::super::errors::Failure;
use super::gzip::GZIP_MIN_BYTES;
use super::table::{TABLE_END, Tables};
use crate::meta::Object;

/// How much is written before it is handed on, in bytes; a row more if that ends there.
const TABLE_CHUNK_BYTES: usize = 32 * 1024;

/// A table of the objects of a list.
#[derive(Debug)]
pub(crate) struct TableBody {
    tables: Tables,
    items: std::vec::IntoIter<Arc<Object>>,
    /// What has been written and not been handed on.
    pending: Vec<u8>,
    /// Whether a row has been written.
    begun: bool,
    /// Whether the end has been written.
    ended: bool,
    /// Whether a chunk has been handed on since others had their turn.
    gives_way: bool,
}

impl TableBody {
    /// A table of these objects, with the metadata of their list.
    ///
    /// # Errors
    /// 500 when one of the first objects cannot be converted or read.
    pub(crate) fn new(
        tables: Tables,
        items: Vec<Arc<Object>>,
        metadata: &Value,
    ) -> Result<Self, Failure> {
        let pending = tables.head(metadata, true)?;
        let mut body = Self {
            tables,
            items: items.into_iter(),
            pending,
            begun: false,
            ended: false,
            gives_way: false,
        };
        body.write_up_to(usize::try_from(GZIP_MIN_BYTES).unwrap_or(usize::MAX))?;
        Ok(body)
    }

    /// All of the table, without the line feed at its end. Other tasks get their turn in between.
    ///
    /// # Errors
    /// 500 when an object cannot be converted or read.
    pub(crate) async fn into_bytes(mut self) -> Result<Vec<u8>, Failure> {
        while !self.ended {
            self.write_up_to(self.pending.len() + TABLE_CHUNK_BYTES)?;
            tokio::task::yield_now().await;
        }
        self.pending.pop();
        Ok(self.pending)
    }

    /// Writes rows until there are so many bytes, or no more rows.
    fn write_up_to(&mut self, bytes: usize) -> Result<(), Failure> {
        while !self.ended && self.pending.len() < bytes {
            if let Some(object) = self.items.next() {
                if self.begun {
                    self.pending.push(b',');
                }
                self.begun = true;
                self.pending.extend(self.tables.row(&object)?);
            } else {
                self.ended = true;
                self.pending.extend_from_slice(TABLE_END);
                self.pending.push(b'\n');
            }
        }
        Ok(())
    }
}

impl Body for TableBody {
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
        if let Err(failure) = self.write_up_to(TABLE_CHUNK_BYTES) {
            // The client sees a body that breaks off: half a list must not look like a whole one.
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
