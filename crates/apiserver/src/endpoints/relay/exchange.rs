//! Sends one request to another server and returns its response.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::HOST;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::backend::{Backend, RelayError, Stream};
use super::switched::Switched;
use super::throttle::Throttle;
use crate::endpoints::body::{BoxError, RequestBody, ResponseBody, full};

/// The buffer of the connection, which holds the head of a response and what is read of its body at once.
const READ_BYTES_MAX: usize = 64 << 10;

type Connection = http1::Connection<TokioIo<Stream>, RequestBody>;

/// The response of a server to a relayed request.
#[derive(Debug)]
pub(crate) enum Relayed {
    /// A response, whose body is read as fast as the client takes it.
    Answered(Response<ResponseBody>),
    /// 101: the connection has switched protocols, and its bytes go both ways from now on.
    Switched(Response<()>, Switched),
}

/// Sends the request and waits for the head of the answer. A server may take as long for that as
/// the client waits: the log of a container that says nothing has no head before the first line.
///
/// # Errors
/// The server cannot be reached, or breaks off.
pub(crate) async fn exchange(
    backend: &Backend,
    mut request: Request<RequestBody>,
) -> Result<Relayed, RelayError> {
    if let Ok(host) = HeaderValue::try_from(backend.authority()) {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    let stream = TokioIo::new(backend.connect().await?);
    let mut builder = http1::Builder::new();
    let handshake = builder.max_buf_size(READ_BYTES_MAX).handshake(stream);
    let (mut sender, mut connection) = handshake.await?;
    let mut answer = pin!(sender.send_request(request));
    let mut over = None;
    let answer = poll_fn(|context| {
        if over.is_none()
            && let Poll::Ready(ended) = connection.poll_without_shutdown(context)
        {
            over = Some(ended);
        }
        answer.as_mut().poll(context)
    });
    let answer = answer.await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Relayed::Answered(answer.map(|body| {
            let connection = over.is_none().then_some(connection);
            RelayedBody { body, connection }.boxed_unsync()
        })));
    }
    match over {
        Some(ended) => ended?,
        None => poll_fn(|context| connection.poll_without_shutdown(context)).await?,
    }
    let parts = connection.into_parts();
    let switched = Switched {
        stream: parts.io.into_inner(),
        early: parts.read_buf,
        throttle: backend.bytes_per_second.map(|bytes_per_second| Throttle {
            bytes_per_second,
            clock: backend.clock.clone(),
        }),
    };
    Ok(Relayed::Switched(answer.map(|_| ()), switched))
}

/// Sends the request and gives the status of the answer, of which nothing else is read.
///
/// # Errors
/// The server cannot be reached, or breaks off.
pub async fn probe(
    backend: &Backend,
    request: Request<RequestBody>,
) -> Result<StatusCode, RelayError> {
    Ok(match exchange(backend, request).await? {
        Relayed::Answered(answer) => answer.status(),
        Relayed::Switched(head, _) => head.status(),
    })
}

/// Sends the request and returns the answer, whose body is read as fast as its owner takes it.
///
/// # Errors
/// The server cannot be reached, or breaks off before the body.
pub async fn fetch_stream(
    backend: &Backend,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, RelayError> {
    Ok(match exchange(backend, request).await? {
        Relayed::Answered(answer) => answer,
        // Nobody asked for it.
        Relayed::Switched(head, _) => head.map(|()| full(Bytes::new())),
    })
}

/// Sends the request and reads the whole answer, whose body may have so many bytes.
///
/// # Errors
/// The server cannot be reached, breaks off, or says more.
pub async fn fetch(
    backend: &Backend,
    request: Request<RequestBody>,
    bytes_max: usize,
) -> Result<Response<Bytes>, RelayError> {
    let (head, mut body) = match exchange(backend, request).await? {
        Relayed::Answered(answer) => answer.into_parts(),
        // Nobody asked for it.
        Relayed::Switched(head, _) => return Ok(head.map(|()| Bytes::new())),
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(RelayError::TooLong(bytes_max));
    }
    let mut content = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(RelayError::Body)?;
        if let Some(data) = frame.data_ref() {
            if content.len() + data.len() > bytes_max {
                return Err(RelayError::TooLong(bytes_max));
            }
            content.extend_from_slice(data);
        }
    }
    Ok(Response::from_parts(head, content.freeze()))
}

/// The body of a relayed response, with the connection over which it comes.
struct RelayedBody {
    body: Incoming,
    /// `None` when it has ended.
    connection: Option<Connection>,
}

impl Body for RelayedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(connection) = &mut self.connection
            && connection.poll_without_shutdown(context).is_ready()
        {
            // An error of the connection is also returned by the body.
            self.connection = None;
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map(|frame| frame.map(|it| it.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
