//! One request to a kubelet and its answer.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::super::body::{BoxError, RequestBody, ResponseBody};
use super::backend::{Backend, RelayError, Stream};
use super::tunnel::{Switched, Tunnel};

/// The head of a kubelet's answer, and what is read of its body at once, have this much room.
const READ_BYTES_MAX: usize = 64 << 10;

type Connection = http1::Connection<TokioIo<Stream>, RequestBody>;

/// What a kubelet has answered.
#[derive(Debug)]
pub(in super::super) enum Relayed {
    /// An answer, whose body is read as it is written to the client.
    Answered(Response<ResponseBody>),
    /// Something else is spoken from now on.
    Switched(Response<()>, Tunnel),
}

/// Sends the request and waits for the head of the answer. A kubelet may take as long for that as
/// the client waits: the log of a container that says nothing has no head before the first line.
///
/// # Errors
/// The kubelet cannot be reached, or breaks off.
pub(in super::super) async fn exchange(
    backend: &Backend,
    mut request: Request<RequestBody>,
) -> Result<Relayed, RelayError> {
    if let Ok(host) = HeaderValue::try_from(backend.authority()) {
        request.headers_mut().insert(HOST, host);
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
    let tunnel = Tunnel::new(Switched {
        stream: parts.io.into_inner(),
        early: parts.read_buf,
    });
    Ok(Relayed::Switched(answer.map(|_| ()), tunnel))
}

/// The body of a kubelet's answer, with the connection over which it comes.
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
            // What went wrong, if anything did, the body tells.
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
