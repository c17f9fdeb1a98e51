//! Discards the rest of a request body that the handler has not read when the response is ready.
//!
//! On HTTP/1.1 the next request follows the body, so hyper would close the connection, and a client that was told to
//! retry would have to reconnect. So a short rest is read and discarded before the response, as Go's server does;
//! otherwise the response says that the connection closes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, SizeHint};
use ringwatch::clock::Clock;
use tokio::sync::oneshot;

use super::body::BoxError;

/// The most bytes of the rest of a body that are read and dropped, as in Go.
const THROWN_AWAY_BYTES_MAX: usize = 256 << 10;
/// The seconds that a client has to send them.
const THROWN_AWAY_SECONDS_MAX: u64 = 1;

/// A body that goes back to its [`Lender`] when it is dropped before its end.
#[derive(Debug)]
pub(super) struct Lent<B: Body> {
    /// The body; `None` only while it is dropped.
    body: Option<B>,
    back: Option<oneshot::Sender<B>>,
}

/// The receiver of a lent body.
#[derive(Debug)]
pub(super) struct Lender<B>(oneshot::Receiver<B>);

/// Lends a body to the handler of the request.
pub(super) fn lend<B: Body>(body: B) -> (Lent<B>, Lender<B>) {
    let (back, returned) = oneshot::channel();
    let lent = Lent {
        body: Some(body),
        back: Some(back),
    };
    (lent, Lender(returned))
}

impl<B: Body<Error: Into<BoxError>> + Unpin> Lender<B> {
    /// Discards the rest once the response is ready. Returns false if the connection cannot continue.
    pub(super) async fn finish(mut self, clock: &Clock) -> bool {
        let Ok(rest) = self.0.try_recv() else {
            return true;
        };
        let mut rest = Limited::new(rest, THROWN_AWAY_BYTES_MAX);
        let all = async {
            while let Some(frame) = rest.frame().await {
                if frame.is_err() {
                    return false;
                }
            }
            true
        };
        let at_most = Duration::from_secs(THROWN_AWAY_SECONDS_MAX);
        clock.timeout(at_most, all).await.unwrap_or(false)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Lent<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl<B: Body> Drop for Lent<B> {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(body), Some(back)) = (unread, self.back.take()) {
            // The receiver may be gone with the connection.
            let _ = back.send(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, StreamBody};

    use super::*;

    #[tokio::test]
    async fn a_small_rest_is_thrown_away_and_a_large_one_is_not() {
        for (bytes, goes_on) in [
            (0, true),
            (THROWN_AWAY_BYTES_MAX, true),
            (THROWN_AWAY_BYTES_MAX + 1, false),
        ] {
            let (lent, lender) = lend(Full::new(Bytes::from(vec![0; bytes])));
            drop(lent);
            assert_eq!(
                lender.finish(&Clock::real()).await,
                goes_on,
                "{bytes} bytes"
            );
        }
    }

    #[tokio::test]
    async fn what_was_read_is_not_missed() {
        let (lent, lender) = lend(Full::new(Bytes::from_static(b"body")));
        assert_eq!(lent.collect().await.expect("read").to_bytes(), "body");
        assert!(lender.finish(&Clock::real()).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_nothing_is_not_waited_for() {
        let never = futures::stream::pending::<Result<Frame<Bytes>, std::io::Error>>();
        let (lent, lender) = lend(StreamBody::new(never));
        drop(lent);
        assert!(!lender.finish(&Clock::real()).await);
    }
}
