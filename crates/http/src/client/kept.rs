//! Connections to another server, and those that are kept for the next request.
//!
//! Nothing is spawned: a kept connection is not polled until it is used again, and is then first asked whether the
//! server has closed it.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Parts, SendRequest};
use hyper_util::rt::TokioIo;
use ringwatch::clock::{Clock, Instant};

use super::error::ExchangeError;
use crate::body::RequestBody;
use crate::tunnel::Duplex;

/// The buffer of a connection, which holds the head of a response and what is read of its body at once.
const READ_BYTES_MAX: usize = 64 << 10;
/// Maximum number of connections that are kept for one server.
const KEPT_MAX: usize = 64;
/// Maximum time for which a connection is kept: API servers close idle ones after 90 seconds.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// The connection over which a request is sent.
pub type BackendStream = Box<dyn Duplex>;

type Connection = http1::Connection<TokioIo<BackendStream>, RequestBody>;

/// A connection over which one request is sent at a time.
pub(super) struct Line {
    sender: SendRequest<RequestBody>,
    /// `None` once it has ended.
    connection: Option<Connection>,
}

/// The failure to get an answer over a connection.
pub(super) enum UnansweredRequest {
    /// The connection was closed before any of the request was sent; here it is again.
    Unsent(Box<Request<RequestBody>>),
    Failed(hyper::Error),
}

impl Line {
    /// Begins HTTP/1.1 over a stream.
    ///
    /// # Errors
    /// [`ExchangeError::Http`]
    pub(super) async fn over(stream: BackendStream) -> Result<Self, ExchangeError> {
        let mut builder = http1::Builder::new();
        let builder = builder.max_buf_size(READ_BYTES_MAX);
        let handshake = builder.handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await?;
        Ok(Self {
            sender,
            connection: Some(connection),
        })
    }

    /// Sends a request, and waits for the head of the answer.
    ///
    /// # Errors
    /// [`UnansweredRequest`]
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, UnansweredRequest> {
        let Self { sender, connection } = self;
        let mut answer = pin!(sender.try_send_request(request));
        let answer = poll_fn(|context| {
            let ended = connection
                .as_mut()
                .map(|it| it.poll_without_shutdown(context));
            let polled = answer.as_mut().poll(context);
            if polled.is_ready() || !matches!(ended, Some(Poll::Ready(_))) {
                return polled;
            }
            // A connection that ends in order gives a request that waits in it back when it is dropped, and not before.
            *connection = None;
            answer.as_mut().poll(context)
        });
        answer
            .await
            .map_err(|mut error| match error.take_message() {
                Some(request) => UnansweredRequest::Unsent(Box::new(request)),
                None => UnansweredRequest::Failed(error.into_error()),
            })
    }

    /// Moves bytes both ways, until the connection has ended. Its error is also returned by the body.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && connection.poll_without_shutdown(context).is_ready()
        {
            self.connection = None;
        }
    }

    /// Waits until the connection has ended, as it does with 101, and returns it with what has been read of the other
    /// protocol.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) async fn switch(self) -> Result<Parts<TokioIo<BackendStream>>, ExchangeError> {
        let mut connection = self.connection.ok_or(ExchangeError::Closed)?;
        poll_fn(|context| connection.poll_without_shutdown(context)).await?;
        Ok(connection.into_parts())
    }

    /// Returns true if the next request can be sent: the last one was sent and its answer read whole, and the server
    /// has not closed the connection.
    fn poll_free(&mut self, context: &mut Context<'_>) -> bool {
        self.poll(context);
        self.connection.is_some() && matches!(self.sender.poll_ready(context), Poll::Ready(Ok(())))
    }
}

/// The connections to one server that are kept. Clones are the same.
#[derive(Clone)]
pub struct KeptConnections {
    lines: Arc<Mutex<VecDeque<(Line, Instant)>>>,
    clock: Clock,
}

impl fmt::Debug for KeptConnections {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeptConnections")
            .finish_non_exhaustive()
    }
}

impl KeptConnections {
    /// Creates the place of these, empty.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            lines: Arc::default(),
            clock,
        }
    }

    /// Takes the connection that was used last, if the server has not closed it.
    pub(super) async fn take(&self) -> Option<Line> {
        loop {
            let (mut line, since) = self.lock().pop_back()?;
            if self.clock.now().saturating_duration_since(since) > KEPT_FOR {
                // Those before it are older.
                self.lock().clear();
                return None;
            }
            if poll_fn(|context| Poll::Ready(line.poll_free(context))).await {
                return Some(line);
            }
        }
    }

    /// Keeps a connection whose answer has been read whole, if the next request can be sent over it. Those that have
    /// been kept for too long are closed.
    pub(super) fn keep(&self, mut line: Line) {
        let now = self.clock.now();
        let is_free = line.poll_free(&mut Context::from_waker(Waker::noop()));
        let mut lines = self.lock();
        lines.retain(|(_, since)| now.saturating_duration_since(*since) <= KEPT_FOR);
        if is_free {
            if lines.len() >= KEPT_MAX {
                lines.pop_front();
            }
            lines.push_back((line, now));
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Line, Instant)>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Method;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;

    use super::super::backend::Backend;
    use super::super::exchange::fetch;
    use super::*;
    use crate::body::full;

    /// Returns a listener and the way to it.
    async fn listen() -> (TcpListener, Backend) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let clock = Clock::real();
        let backend = Backend {
            host: "127.0.0.1".to_owned(),
            port,
            tls: None,
            name: "127.0.0.1".to_owned(),
            may_be_local: true,
            connect_timeout: Duration::from_secs(5),
            bytes_per_second: None,
            kept: Some(KeptConnections::new(clock.clone())),
            clock,
        };
        (listener, backend)
    }

    async fn ask(backend: &Backend, method: Method) -> Result<Bytes, ExchangeError> {
        let request = Request::builder().method(method).uri("/");
        let request = request.body(full("")).expect("a request");
        let answer = fetch(backend, request, 100).await?;
        Ok(answer.into_body())
    }

    /// Reads a request without a body; returns false if the client has closed the connection.
    async fn read(stream: &mut TcpStream) -> bool {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return false,
            }
        }
        true
    }

    async fn answer(stream: &mut TcpStream, body: &str) {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        let sent = stream.write_all((head + body).as_bytes()).await;
        sent.expect("a client");
    }

    #[tokio::test]
    async fn the_next_request_uses_the_connection_again() {
        let (listener, backend) = listen().await;
        let server = async {
            let (mut stream, _) = listener.accept().await.expect("a client");
            for body in ["one", "two"] {
                assert!(read(&mut stream).await);
                answer(&mut stream, body).await;
            }
        };
        let client = async {
            assert_eq!(ask(&backend, Method::GET).await.expect("answered"), "one");
            assert_eq!(ask(&backend, Method::POST).await.expect("answered"), "two");
        };
        tokio::join!(server, client);
    }

    #[tokio::test]
    async fn a_connection_that_was_closed_meanwhile_is_not_used() {
        let (listener, backend) = listen().await;
        let is_closed = Notify::new();
        let server = async {
            for body in ["one", "two"] {
                let (mut stream, _) = listener.accept().await.expect("a client");
                assert!(read(&mut stream).await);
                answer(&mut stream, body).await;
                drop(stream);
                is_closed.notify_one();
            }
        };
        let client = async {
            assert_eq!(ask(&backend, Method::POST).await.expect("answered"), "one");
            is_closed.notified().await;
            assert_eq!(ask(&backend, Method::POST).await.expect("answered"), "two");
        };
        tokio::join!(server, client);
    }

    #[tokio::test]
    async fn a_read_that_a_kept_connection_does_not_answer_is_sent_again_and_a_write_is_not() {
        for method in [Method::GET, Method::POST] {
            let (listener, backend) = listen().await;
            let server = async {
                let (mut stream, _) = listener.accept().await.expect("a client");
                assert!(read(&mut stream).await);
                answer(&mut stream, "one").await;
                assert!(read(&mut stream).await);
                drop(stream);
                if method.is_safe() {
                    let (mut stream, _) = listener.accept().await.expect("a client");
                    assert!(read(&mut stream).await);
                    answer(&mut stream, "two").await;
                }
            };
            let client = async {
                assert_eq!(ask(&backend, Method::GET).await.expect("answered"), "one");
                let second = ask(&backend, method.clone()).await;
                match method.is_safe() {
                    true => assert_eq!(second.expect("sent again"), "two"),
                    false => assert!(second.is_err(), "a write may have happened"),
                }
            };
            tokio::join!(server, client);
        }
    }
}
