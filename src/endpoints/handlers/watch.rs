//! Following the objects of a namespace, or of all.
//!
//! The hard part is joining: all events that wait go out as one chunk, so that a burst costs one
//! write and not one an event. The stream ends with its deadline, or after an error.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream};
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};

use super::super::body::{BoxError, ResponseBody};
use super::super::call::{Call, WatchTerms};
use super::super::encoding::frame;
use super::super::errors::{About, Failure};
use super::super::negotiation::{Form, Format};
use super::super::params::ListParams;
use super::super::response;
use crate::meta::{Object, WatchEvent};
use crate::registry::Store;
use crate::storage::WatchStream;

/// How many bytes of events are joined.
const CHUNK_BYTES: usize = 16 * 1024;

/// Answers with a stream of events.
///
/// # Errors
/// 400 and 422 for bad parameters, 406, 429 while the cache is not ready. What comes later is told
/// in the stream.
pub(in super::super) async fn watch(
    call: &Call<'_>,
    terms: WatchTerms,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.stream_output()?;
    let mut params = ListParams::read(call.query)?;
    if !call.name().is_empty() {
        params.select_name(call.name())?;
    }
    let timeout = params
        .timeout()
        .unwrap_or_else(|| between_one_and_two_times(terms.default_timeout));
    let mut options = params.into_options(call.about())?;
    let deadline = call.context.clock.now() + timeout;
    options.deadline = Some(deadline);
    let events = call
        .store
        .watch(call.namespace(), options)
        .await
        .map_err(|error| call.fail(error))?;
    let clock = call.context.clock.clone();
    let body = WatchBody {
        events,
        store: Arc::new(call.store.clone()),
        format: output.format,
        partial: output.form != Form::Whole,
        terms,
        deadline: async move { clock.sleep_until(deadline).await }.boxed(),
        ended: false,
    };
    Ok(response::respond(
        StatusCode::OK,
        output.format.stream_media_type(),
        body.boxed_unsync(),
    ))
}

/// A random duration, so that watches that began together do not end together.
fn between_one_and_two_times(base: Duration) -> Duration {
    base.mul_f64(1.0 + rand::random::<f64>())
}

/// The events of a watch as they come.
struct WatchBody {
    events: WatchStream,
    store: Arc<Store>,
    format: Format,
    /// Whether only metadata is sent.
    partial: bool,
    terms: WatchTerms,
    deadline: BoxFuture<'static, ()>,
    ended: bool,
}

impl WatchBody {
    /// Writes an event; one that cannot be written ends the watch.
    fn write(&mut self, out: &mut BytesMut, event: WatchEvent) {
        self.terms.events.inc();
        let (kind, object) = match event {
            WatchEvent::Added(object) => ("ADDED", self.encode(object)),
            WatchEvent::Modified(object) => ("MODIFIED", self.encode(object)),
            WatchEvent::Deleted(object) => ("DELETED", self.encode(object)),
            WatchEvent::Bookmark {
                revision,
                initial_events_end,
            } => {
                let resource = self.store.resource();
                let object = frame::bookmark(resource, self.partial, revision, initial_events_end);
                ("BOOKMARK", Ok(object.into()))
            }
        };
        let written = object.and_then(|json| frame::write_event(out, self.format, kind, &json));
        if let Err(failure) = written {
            self.end(out, &failure);
        }
    }

    fn encode(&self, object: Arc<Object>) -> Result<Bytes, Failure> {
        let served = self.store.to_served(object).map_err(Failure::internal)?;
        if self.partial {
            let json = frame::partial_metadata(served.json()).map_err(Failure::internal)?;
            Ok(json.into())
        } else {
            Ok(served.json().clone())
        }
    }

    fn end(&mut self, out: &mut BytesMut, failure: &Failure) {
        self.ended = true;
        let status = serde_json::to_vec(failure.status()).unwrap_or_default();
        // A Status has every form. If it had not, the watch would end without one.
        let _ = frame::write_event(out, self.format, "ERROR", &status);
    }
}

impl Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.ended || this.deadline.poll_unpin(context).is_ready() {
            this.ended = true;
            return Poll::Ready(None);
        }
        let mut out = BytesMut::new();
        while !this.ended && out.len() < CHUNK_BYTES {
            match Pin::new(&mut this.events).poll_next(context) {
                Poll::Ready(Some(Ok(event))) => this.write(&mut out, event),
                Poll::Ready(Some(Err(error))) => {
                    let store = Arc::clone(&this.store);
                    let about = About {
                        resource: store.resource(),
                        name: "",
                        verb: "watch",
                    };
                    this.end(&mut out, &Failure::of_storage(&error, about));
                }
                Poll::Ready(None) => this.ended = true,
                Poll::Pending => break,
            }
        }
        if !out.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(out.freeze()))));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
