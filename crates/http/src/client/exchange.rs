//! Sends one request to another server and returns its response.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::HOST;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use ringwatch_apimachinery::upgrade::is_upgrade;

use super::backend::Backend;
use super::error::ExchangeError;
use super::kept::{KeptConnections, Line, UnansweredRequest};
use super::switched::SwitchedConnection;
use super::throttle::Throttle;
use crate::body::{BoxError, RequestBody, ResponseBody, full};

/// The answer of a server to a request.
#[derive(Debug)]
pub enum BackendAnswer {
    /// A response, whose body is read as fast as the client takes it.
    Answered(Response<ResponseBody>),
    /// 101: the connection has switched protocols, and its bytes go both ways from now on.
    Switched(Response<()>, SwitchedConnection),
}

/// Sends the request and waits for the head of the answer. A server may take as long for that as
/// the client waits: the log of a container that says nothing has no head before the first line.
///
/// # Errors
/// The server cannot be reached, or breaks off.
pub async fn exchange(
    backend: &Backend,
    mut request: Request<RequestBody>,
) -> Result<BackendAnswer, ExchangeError> {
    if let Ok(host) = HeaderValue::try_from(backend.authority()) {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    let (answer, line) = answered(backend, request).await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Ok(BackendAnswer::Answered(answer.map(|body| {
            let body = ExchangeBody {
                is_whole: body.is_end_stream(),
                body,
                line: Some(line),
                kept: backend.kept.clone(),
            };
            body.boxed_unsync()
        })));
    }
    let parts = line.switch().await?;
    let switched = SwitchedConnection {
        stream: parts.io.into_inner(),
        early: parts.read_buf,
        throttle: backend.bytes_per_second.map(|bytes_per_second| Throttle {
            bytes_per_second,
            clock: backend.clock.clone(),
        }),
    };
    Ok(BackendAnswer::Switched(answer.map(|_| ()), switched))
}

/// Sends the request over a kept connection, or over a new one if there is none or if it turns out to be closed. A
/// server may close a kept connection while the request is on its way; then one that changes nothing is sent again, and
/// any other fails.
async fn answered(
    backend: &Backend,
    mut request: Request<RequestBody>,
) -> Result<(Response<Incoming>, Line), ExchangeError> {
    if let Some(kept) = &backend.kept {
        while let Some(mut line) = kept.take().await {
            let (parts, body) = request.into_parts();
            let changes_nothing = parts.method.is_safe() && !is_upgrade(&parts.headers);
            let again = (changes_nothing && body.is_end_stream()).then(|| parts.clone());
            match line.send(Request::from_parts(parts, body)).await {
                Ok(answer) => return Ok((answer, line)),
                Err(UnansweredRequest::Unsent(unsent)) => request = *unsent,
                Err(UnansweredRequest::Failed(error)) => match again {
                    Some(parts) if error.is_incomplete_message() => {
                        request = Request::from_parts(parts, full(""));
                    }
                    _ => return Err(error.into()),
                },
            }
        }
    }
    let mut line = Line::over(backend.connect().await?).await?;
    match line.send(request).await {
        Ok(answer) => Ok((answer, line)),
        Err(UnansweredRequest::Unsent(_)) => Err(ExchangeError::Closed),
        Err(UnansweredRequest::Failed(error)) => Err(error.into()),
    }
}

/// Sends the request and gives the status of the answer, of which nothing else is read.
///
/// # Errors
/// The server cannot be reached, or breaks off.
pub async fn probe(
    backend: &Backend,
    request: Request<RequestBody>,
) -> Result<StatusCode, ExchangeError> {
    Ok(match exchange(backend, request).await? {
        BackendAnswer::Answered(answer) => answer.status(),
        BackendAnswer::Switched(head, _) => head.status(),
    })
}

/// Sends the request and returns the answer, whose body is read as fast as its owner takes it.
///
/// # Errors
/// The server cannot be reached, or breaks off before the body.
pub async fn fetch_stream(
    backend: &Backend,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, ExchangeError> {
    Ok(match exchange(backend, request).await? {
        BackendAnswer::Answered(answer) => answer,
        // Nobody asked for it.
        BackendAnswer::Switched(head, _) => head.map(|()| full(Bytes::new())),
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
) -> Result<Response<Bytes>, ExchangeError> {
    let (head, mut body) = match exchange(backend, request).await? {
        BackendAnswer::Answered(answer) => answer.into_parts(),
        // Nobody asked for it.
        BackendAnswer::Switched(head, _) => return Ok(head.map(|()| Bytes::new())),
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ExchangeError::TooLong(bytes_max));
    }
    let mut content = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(ExchangeError::Body)?;
        if let Some(data) = frame.data_ref() {
            if content.len() + data.len() > bytes_max {
                return Err(ExchangeError::TooLong(bytes_max));
            }
            content.extend_from_slice(data);
        }
    }
    Ok(Response::from_parts(head, content.freeze()))
}

/// The body of a response, with the connection over which it comes.
struct ExchangeBody {
    body: Incoming,
    /// True once it has been read to its end.
    is_whole: bool,
    /// `None` only while this is dropped.
    line: Option<Line>,
    /// The place where the connection is kept afterwards.
    kept: Option<KeptConnections>,
}

impl Drop for ExchangeBody {
    fn drop(&mut self) {
        if self.is_whole
            && let Some((kept, line)) = self.kept.take().zip(self.line.take())
        {
            kept.keep(line);
        }
    }
}

impl Body for ExchangeBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(line) = &mut self.line {
            line.poll(context);
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.is_whole = matches!(frame, Poll::Ready(None)) || self.body.is_end_stream();
        frame.map(|frame| frame.map(|it| it.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
