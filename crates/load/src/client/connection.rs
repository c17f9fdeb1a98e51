//! A connection for requests: one at a time over HTTP/1.1, many at once over HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{self, ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use ringwatch_tls::target::USER_AGENT;

use super::request::{ClientRequest, Response};
use super::status::StatusFailure;
use super::stream::{ByteStream, CountedStream};
use super::{Client, ClientError, HttpVersion, within_bound};

/// A stream may be sent this much ahead, as client-go allows.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// A connection may be sent this much ahead.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;

/// A connection. Over HTTP/2 [`Connection::another`] gives further handles to it; it ends with the
/// last of them and of its watches.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    sender: Sender,
    /// The number of bytes that have come so far, without those of TLS.
    received: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

fn broken(error: impl std::error::Error) -> ClientError {
    // hyper's own text leaves out the cause.
    let cause = error.source().map(|cause| format!(": {cause}"));
    ClientError::Broken(format!("{error}{}", cause.unwrap_or_default()))
}

/// Converts the error of a connection that takes no more requests.
fn unsent(error: hyper::Error) -> ClientError {
    match broken(error) {
        ClientError::Broken(why) => ClientError::Unsent(why),
        error => error,
    }
}

/// Converts the error of a request. hyper cancels those that it has not begun to send.
fn unanswered(error: hyper::Error) -> ClientError {
    if error.is_canceled() {
        unsent(error)
    } else {
        broken(error)
    }
}

impl Connection {
    /// Begins to speak HTTP. What drives the connection is a task that ends with it; how it ended
    /// shows in the next request.
    pub(super) async fn over(client: &Client, stream: ByteStream) -> Result<Self, ClientError> {
        let received = Arc::new(AtomicU64::new(0));
        let io = TokioIo::new(CountedStream {
            stream,
            received: Arc::clone(&received),
        });
        let sender = match client.http {
            HttpVersion::One => {
                let (sender, connection) = http1::handshake(io).await.map_err(broken)?;
                tokio::spawn(connection);
                Sender::Http1(sender)
            }
            HttpVersion::Two => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW_BYTES)
                    .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
                    .handshake(io)
                    .await
                    .map_err(broken)?;
                tokio::spawn(connection);
                Sender::Http2(sender)
            }
        };
        Ok(Self {
            client: client.clone(),
            sender,
            received,
        })
    }

    /// Returns another handle to the same connection; `None` over HTTP/1.1, where a connection carries one request at
    /// a time.
    pub(crate) fn another(&self) -> Option<Self> {
        let Sender::Http2(sender) = &self.sender else {
            return None;
        };
        Some(Self {
            client: self.client.clone(),
            sender: Sender::Http2(sender.clone()),
            received: Arc::clone(&self.received),
        })
    }

    /// Returns the number of bytes that have come over the connection so far: heads, frames and bodies, without TLS.
    pub(crate) fn received_bytes(&self) -> u64 {
        // Relaxed: the number orders nothing else.
        self.received.load(Ordering::Relaxed)
    }

    /// Asks and waits for the whole answer, whatever its status.
    pub(crate) async fn request(
        &mut self,
        request: ClientRequest,
    ) -> Result<Response, ClientError> {
        within_bound(async {
            let accept = request.accept.media_type();
            let answer = self.send(request, accept).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await.map_err(broken)?;
            let body = body.to_bytes();
            Ok(Response { status, body })
        })
        .await
    }

    /// Asks for a stream of this media type that begins with success, and returns its body.
    pub(crate) async fn stream(
        &mut self,
        path: &str,
        accept: &str,
    ) -> Result<Incoming, ClientError> {
        within_bound(async {
            let answer = self.send(ClientRequest::get(path), accept).await?;
            let status = answer.status();
            if !status.is_success() {
                let body = answer.into_body().collect().await.map_err(broken)?;
                return Err(StatusFailure::read(&body.to_bytes()).into_error(status.as_u16()));
            }
            Ok(answer.into_body())
        })
        .await
    }

    async fn send(
        &mut self,
        request: ClientRequest,
        accept: &str,
    ) -> Result<http::Response<Incoming>, ClientError> {
        let authority = &self.client.target.authority;
        let mut builder = http::Request::builder().method(request.method);
        builder = match &self.sender {
            Sender::Http1(_) => builder.uri(&request.path).header(HOST, authority),
            Sender::Http2(_) => builder.uri(format!("https://{authority}{}", request.path)),
        };
        builder = builder.header(ACCEPT, accept);
        builder = builder.header(header::USER_AGENT, USER_AGENT);
        if let Some(authorization) = self.client.authorization() {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        let body = match request.content {
            Some(content) => {
                builder = builder.header(CONTENT_TYPE, content.media_type);
                content.bytes
            }
            None => Bytes::new(),
        };
        let request = builder.body(Full::from(body)).map_err(broken)?;
        match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await.map_err(unsent)?;
                sender.send_request(request).await.map_err(unanswered)
            }
            Sender::Http2(sender) => {
                sender.ready().await.map_err(unsent)?;
                sender.send_request(request).await.map_err(unanswered)
            }
        }
    }
}
