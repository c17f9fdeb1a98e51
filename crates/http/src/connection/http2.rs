//! Serves HTTP/2 over a connection by hyper, and decides when the connection ends.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderValue, Method, Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{Client, Connections, HEAD_BYTES_MAX, IDLE, abandonment, answer};
use crate::body::{BoxError, EventStream};
use crate::doorbell::rarely;
use crate::joined_io;
use crate::layered_io::LayeredIo;
use crate::outgoing::CountedBody;
use crate::unauthenticated::{FIRST_HEAD_MAX, FirstFrames};
use crate::watch_streams::body::{Handovers, StreamBody};

/// The flow-control window of a stream: the maximum number of bytes in flight from a client.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// The flow-control window of a connection, for all its streams together.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// Maximum number of bytes that a stream buffers for the client; beyond it the body waits.
const STREAM_SEND_BUFFER_BYTES: usize = 64 << 10;
/// The interval of PING frames, and the time within which they must be answered.
const KEEP_ALIVE_SECONDS: u64 = 30;
/// Default maximum number of streams of an HTTP/2 connection, as in kube-apiserver.
const STREAMS_MAX_DEFAULT: u32 = 100;
/// The time between the end of the last stream after GOAWAY and the end of the connection.
const FAREWELL: Duration = Duration::from_secs(2);
/// The time within which a client must be authenticated.
const FIRST_STREAMS_MAX: Duration = Duration::from_secs(60);

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionEnd {
    /// The connection is to be closed: open streams are served to their end.
    GoAway,
    /// The client has sent no request in time.
    Silent,
    /// The client does not read a response.
    Abandoned,
}

impl Connections {
    pub(super) async fn serve_h2<T>(&self, io: T, client: Client) -> Result<(), BoxError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let counted = client.clone();
        let leave = CancellationToken::new();
        let leaving = leave.clone();
        let handovers = Handovers::default();
        let offered = handovers.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let head = request.method() == Method::HEAD;
            let answer = answer(request, client.clone());
            let leave = leave.clone();
            let offered = offered.clone();
            // A stream's task has the size of its largest state. The future that makes the response is boxed, so that a
            // watch does not keep that size.
            Box::pin(async move {
                let Ok(mut response) = answer.await;
                // HTTP/2 has no such header; as in Go's server it stands for GOAWAY.
                if response.headers_mut().remove(CONNECTION).is_some() {
                    leave.cancel();
                }
                let response = if head {
                    without_body(response).map(StreamBody::from)
                } else if let Some(watch) = response.extensions_mut().remove::<EventStream>() {
                    response.map(|body| offered.watch(body.sharing(watch.shared)))
                } else {
                    response.map(StreamBody::from)
                };
                Ok::<_, Infallible>(response)
            })
        });
        let streams_max = match self.streams_max {
            0 => STREAMS_MAX_DEFAULT,
            streams => streams,
        };
        let first_frames = FirstFrames::new(&counted.peer.standing, counted.outgoing.share());
        let io = LayeredIo::new(io, first_frames);
        let (io, mut turns) = joined_io::join(io, Some(handovers));
        let mut connection = pin!(
            http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(streams_max)
                .max_header_list_size(HEAD_BYTES_MAX)
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                .max_send_buf_size(STREAM_SEND_BUFFER_BYTES)
                .keep_alive_interval(Duration::from_secs(KEEP_ALIVE_SECONDS))
                .keep_alive_timeout(Duration::from_secs(KEEP_ALIVE_SECONDS))
                .serve_connection(TokioIo::new(io), service)
        );
        let end = rarely(async {
            tokio::select! {
                end = self.end(&counted) => end,
                () = leaving.cancelled() => ConnectionEnd::GoAway,
            }
        });
        let end = tokio::select! {
            result = turns.drive(connection.as_mut()) => return Ok(result??),
            end = end => end,
        };
        match end {
            ConnectionEnd::GoAway => connection.as_mut().graceful_shutdown(),
            ConnectionEnd::Silent => return Ok(()),
            ConnectionEnd::Abandoned => return Err(abandonment()),
        }
        tokio::select! {
            result = turns.drive(connection) => Ok(result??),
            () = self.abandoned(&counted.outgoing) => Err(abandonment()),
            () = self.farewell(&counted) => Ok(()),
        }
    }

    /// Completes when the connection should end.
    async fn end(&self, client: &Client) -> ConnectionEnd {
        let clock = &self.clock;
        tokio::select! {
            () = self.closing.cancelled() => ConnectionEnd::GoAway,
            () = self.abandoned(&client.outgoing) => ConnectionEnd::Abandoned,
            () = client.outgoing.idle(clock, IDLE) => ConnectionEnd::GoAway,
            end = self.unwanted(client) => end,
        }
    }

    /// Completes when the client has not sent a request in time, or none with valid credentials: it then has to
    /// reconnect, as in kube-apiserver.
    async fn unwanted(&self, client: &Client) -> ConnectionEnd {
        let standing = &client.peer.standing;
        let first = self.clock.timeout(FIRST_HEAD_MAX, standing.judged());
        if first.await.is_err() && !standing.is_judged() {
            return ConnectionEnd::Silent;
        }
        while !standing.is_refused() {
            standing.judged().await;
        }
        ConnectionEnd::GoAway
    }

    /// Completes when a connection may be closed after GOAWAY. A client that never acknowledges would otherwise keep it
    /// open.
    async fn farewell(&self, client: &Client) {
        let (clock, standing) = (&self.clock, &client.peer.standing);
        let latest = clock.now() + FIRST_STREAMS_MAX;
        loop {
            // A first request that is being authenticated may need the rest of its body, which is read once the task is
            // woken.
            let judged = clock.timeout(FAREWELL, standing.judged()).await;
            let late = !standing.is_authenticated() && clock.now() >= latest;
            if late || judged.is_err() && client.outgoing.in_progress() == 0 {
                return;
            }
        }
    }
}

/// Removes the body of the response to a HEAD request and leaves its length in the header. hyper does that for
/// HTTP/1.1 only.
fn without_body(response: Response<CountedBody>) -> Response<CountedBody> {
    let length = response.body().size_hint().exact();
    let mut response = response.map(CountedBody::emptied);
    if let Some(length) = length {
        let header = response.headers_mut().entry(CONTENT_LENGTH);
        header.or_insert_with(|| HeaderValue::from(length));
    }
    response
}
