//! A response body with something that lasts as long as it does.
//!
//! A request is in progress until its body is sent, so its permit is dropped with the body. A watch ends by itself, or
//! when the server ends all watches.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Collected};
use hyper::body::{Body, Frame, SizeHint};
use ringwatch::clock::{Clock, Timer};
use ringwatch_flowcontrol::fairness::{Turn, WatchPlace};

use super::Permit;
use super::drain::OpenWatch;
use crate::cancellation::{CancellationFlag, Cancelled};
use crate::endpoints::{BoxError, ResponseBody, full};
use crate::running_requests::RunningRequest;

/// A response body with something that lasts as long as it does.
#[derive(Debug)]
pub struct HeldBody {
    inner: ResponseBody,
    /// The permits that are released with the body.
    held: Held,
    /// Completes when the body is to end regularly.
    end: Option<Cancelled>,
    /// Completes when the body is to break off.
    time: Option<Pin<Box<Timer>>>,
}

/// The permits that a body may hold, most of them for their drop.
#[derive(Debug)]
enum Held {
    Nothing,
    /// A place among the requests in flight, the request's seats, and its place among those that run.
    Place {
        _permit: Permit,
        _turn: Option<Box<Turn>>,
        running: Box<RunningRequest>,
    },
    /// A place among the watches of a user.
    Watch {
        _place: WatchPlace,
    },
    /// The same, and a place among the watches that end one by one.
    CountedWatch {
        _place: Option<WatchPlace>,
        _open: Box<OpenWatch>,
    },
}

impl HeldBody {
    /// Wraps a body that holds a place among the requests in flight, the request's seats, and its place among those that run.
    #[must_use]
    pub fn holding(
        inner: ResponseBody,
        permit: Permit,
        turn: Option<Turn>,
        running: RunningRequest,
    ) -> Self {
        Self {
            held: Held::Place {
                _permit: permit,
                _turn: turn.map(Box::new),
                running: Box::new(running),
            },
            ..Self::from(inner)
        }
    }

    /// Wraps the body of a watch or stream, which ends regularly once `end` is cancelled and what is ready has been
    /// sent.
    #[must_use]
    pub fn until(inner: ResponseBody, end: &CancellationFlag, place: Option<WatchPlace>) -> Self {
        Self {
            end: Some(end.cancelled()),
            held: place.map_or(Held::Nothing, |place| Held::Watch { _place: place }),
            ..Self::from(inner)
        }
    }

    /// Wraps the body of a watch that ends regularly when it is its turn.
    #[must_use]
    pub(crate) fn until_its_turn(
        inner: ResponseBody,
        open: OpenWatch,
        place: Option<WatchPlace>,
    ) -> Self {
        Self {
            end: Some(open.end().cancelled()),
            held: Held::CountedWatch {
                _place: place,
                _open: Box::new(open),
            },
            ..Self::from(inner)
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
    pub(super) fn wrapped(self, wrap: impl FnOnce(ResponseBody) -> ResponseBody) -> Self {
        Self {
            inner: wrap(self.inner),
            ..self
        }
    }

    /// Reads a short body to its end; `None` if it breaks off.
    pub(super) async fn read_whole(self) -> (Option<Bytes>, Self) {
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

impl From<ResponseBody> for HeldBody {
    /// Wraps a body that holds nothing and ends by itself.
    fn from(inner: ResponseBody) -> Self {
        Self {
            inner,
            held: Held::Nothing,
            end: None,
            time: None,
        }
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) {
            if let (Held::Place { running, .. }, Some(Ok(frame))) = (&self.held, &frame) {
                running.sent(frame.data_ref().map_or(0, Bytes::len));
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
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test]
    async fn a_watch_ends_when_told_to() {
        let first = futures::stream::iter([Ok(Frame::data(Bytes::from_static(b"event")))]);
        let inner = StreamBody::new(futures::StreamExt::chain(
            first,
            futures::stream::pending::<Result<_, BoxError>>(),
        ));
        let end = CancellationFlag::default();
        let mut body = HeldBody::until(inner.boxed_unsync(), &end, None);
        let frame = body.frame().await.expect("a frame").expect("no error");
        assert_eq!(frame.into_data().expect("data"), "event");
        assert!(futures::poll!(std::pin::pin!(body.frame())).is_pending());
        end.cancel();
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_body_breaks_off_when_its_time_is_over() {
        let endless = StreamBody::new(futures::stream::pending::<Result<_, BoxError>>());
        let body = HeldBody::from(endless.boxed_unsync());
        let mut body = body.within(Duration::from_millis(1), &Clock::real());
        assert!(body.frame().await.expect("an end").is_err());
    }
}
