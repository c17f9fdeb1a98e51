//! The bodies of requests and responses.
//!
//! A request is in progress until the body of its response is sent, so what it holds meanwhile, such as its place among
//! the requests in flight, is dropped with the body. A watch ends by itself, or when the server ends all watches.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Collected, Full, StreamBody};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use ringwatch::clock::{Clock, Instant, Timer};
use ringwatch::storage::FollowOutcome;

use super::cancellation::{CancellationFlag, Cancelled};

/// An error of a body: the transport's own.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request.
pub type RequestBody = UnsyncBoxBody<Bytes, BoxError>;

/// The content of a response, without what lasts as long as it does.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Marks a response, in its extensions, as a watch: its body sends events as they occur.
#[derive(Clone, Debug)]
pub struct EventStream {
    /// The latest time at which the body ends.
    pub deadline: Instant,
    /// The events of the body, if other watches of its connection may get the same. Whoever wraps the body to look at
    /// its frames has to remove them.
    pub shared: Option<Arc<dyn SharedEvents>>,
}

/// The events of a watch, which can be left to a leader: one source of chunks for all watches of a connection that get
/// the same. While it follows, the body of the watch has no frames of its own but its end.
pub trait SharedEvents: fmt::Debug + Send + Sync {
    /// Returns a number that all watches share that can follow each other. Others have another one, but by chance.
    fn class(&self) -> u64;

    /// Returns a leader for this watch and those like it; `None` if it has not come to the newest events, or ends soon.
    fn leader(&self) -> Option<Box<dyn LeadingEvents>>;

    /// Leaves the events from here on to a leader.
    fn follow(&self, leader: &mut dyn LeadingEvents) -> FollowOutcome;

    /// Returns true if the watch is to take over, since it ends soon.
    fn wants_own(&self) -> bool;

    /// Takes up the events again, after the leader's last chunk. The body ends with the leader.
    fn take_over(&self, leader: &dyn LeadingEvents);
}

/// The chunks of all watches of a connection that follow one leader.
pub trait LeadingEvents: Any + fmt::Debug + Send {
    /// Returns the next chunk, which is sent to so many watches; `None` at the end, at which all have to take over.
    fn poll_chunk(&mut self, context: &mut Context<'_>, followers: usize) -> Poll<Option<Bytes>>;
}

/// Returns a body of known content.
#[must_use]
pub fn full(content: impl Into<Bytes>) -> ResponseBody {
    Full::new(content.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns a body whose content comes in pieces. It is cut off, visibly for the client, at the first error.
pub fn streamed(
    pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
) -> ResponseBody {
    StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync()
}

/// Something that lasts as long as the body of a response: most guards only wait for their drop.
pub trait BodyGuard: fmt::Debug + Send {
    /// Notes that the transport has taken a frame with so many bytes. Frames of bodies that end when told to, such as
    /// those of watches, are not told of.
    fn sent(&self, bytes: usize) {
        let _ = bytes;
    }
}

/// The body of a response, with something that lasts as long as it does.
#[derive(Debug)]
pub struct Body {
    inner: ResponseBody,
    /// Dropped with the body; `None` if nothing is held for it.
    guard: Option<Box<dyn BodyGuard>>,
    /// Completes when the body is to end regularly.
    end: Option<Cancelled>,
    /// Completes when the body is to break off.
    time: Option<Pin<Box<Timer>>>,
}

impl Body {
    /// Wraps a body that ends by itself.
    #[must_use]
    pub fn holding(inner: impl Into<Self>, guard: Box<dyn BodyGuard>) -> Self {
        Self {
            guard: Some(guard),
            ..inner.into()
        }
    }

    /// Wraps the body of a watch or stream, which ends regularly once `end` is cancelled and what is ready has been
    /// sent.
    #[must_use]
    pub fn until(
        inner: impl Into<Self>,
        end: &CancellationFlag,
        guard: Option<Box<dyn BodyGuard>>,
    ) -> Self {
        Self {
            end: Some(end.cancelled()),
            guard,
            ..inner.into()
        }
    }

    /// Limits the body to this time. If it takes longer, it ends as if the connection had broken.
    #[must_use]
    pub fn within(mut self, time: Duration, clock: &Clock) -> Self {
        self.time = Some(Box::pin(clock.timer(clock.now() + time)));
        self
    }

    /// Wraps the content in another body.
    #[must_use]
    pub fn wrapped(self, wrap: impl FnOnce(ResponseBody) -> ResponseBody) -> Self {
        Self {
            inner: wrap(self.inner),
            ..self
        }
    }

    /// Reads a short body to its end; `None` if it breaks off.
    pub async fn read_whole(self) -> (Option<Bytes>, Self) {
        let content = self.inner.collect().await.map(Collected::to_bytes).ok();
        let inner = full(content.clone().unwrap_or_default());
        (content, Self { inner, ..self })
    }

    /// Completes when the body of a watch or stream is to end regularly; never for others.
    pub async fn told_to_end(&mut self) {
        match &mut self.end {
            Some(end) => end.await,
            None => std::future::pending().await,
        }
    }

    /// Returns true if it ends soon without being told, as all bodies but those of watches and streams do.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        self.end.is_none()
    }
}

impl From<ResponseBody> for Body {
    /// Wraps a body that holds nothing and ends by itself.
    fn from(inner: ResponseBody) -> Self {
        Self {
            inner,
            guard: None,
            end: None,
            time: None,
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) {
            if let (None, Some(guard), Some(Ok(frame))) = (&self.end, &self.guard, &frame) {
                guard.sent(frame.data_ref().map_or(0, Bytes::len));
            }
            return Poll::Ready(frame);
        }
        if let Some(time) = &mut self.time
            && time.as_mut().poll(context).is_ready()
        {
            let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
            return Poll::Ready(Some(Err(late.into())));
        }
        match self.end.as_mut().map(|end| Pin::new(end).poll(context)) {
            Some(Poll::Ready(())) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_watch_ends_when_told_to() {
        let first = futures::stream::iter([Ok(Frame::data(Bytes::from_static(b"event")))]);
        let inner = StreamBody::new(futures::StreamExt::chain(
            first,
            futures::stream::pending::<Result<_, BoxError>>(),
        ));
        let end = CancellationFlag::default();
        let mut body = Body::until(inner.boxed_unsync(), &end, None);
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(frame.into_data().expect("data"), "event");
        assert!(futures::poll!(std::pin::pin!(body.frame())).is_pending());
        end.cancel();
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_body_breaks_off_when_its_time_is_over() {
        let endless = StreamBody::new(futures::stream::pending::<Result<_, BoxError>>());
        let body = Body::from(endless.boxed_unsync());
        let mut body = body.within(Duration::from_millis(1), &Clock::real());
        assert!(body.frame().await.expect("an end").is_err());
    }
}
