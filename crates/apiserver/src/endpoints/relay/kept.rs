//! Connections to another server, and those that are kept for the next request.
//!
//! Nothing is spawned: a kept connection is not polled until it is used again, and is then first asked whether the server has
//! closed it.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Parts, SendRequest};
use hyper_util::rt::TokioIo;
use ringwatch::clock::{Clock, Instant};

use super::backend::{Backend, RelayError, Stream};
use crate::endpoints::body::RequestBody;

/// The buffer of a connection, which holds the head of a response and what is read of its body at once.
const READ_BYTES_MAX: usize = 64 << 10;
/// Maximum number of connections that are kept for one server.
const KEPT_MAX: usize = 64;
/// Maximum time for which a connection is kept: API servers close idle ones after 90 seconds.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// A connection over which one request is sent at a time.
pub(super) struct Line {
    sender: SendRequest<RequestBody>,
    connection: http1::Connection<TokioIo<Stream>, RequestBody>,
    /// The end of the connection, once it has come.
    over: Option<Result<(), hyper::Error>>,
}

/// The failure to get an answer over a connection.
pub(super) enum Unanswered {
    /// The connection was closed before any of the request was sent; here it is again.
    Unsent(Box<Request<RequestBody>>),
    Failed(hyper::Error),
}

impl Line {
    /// Connects to a server.
    ///
    /// # Errors
    /// As [`Backend::connect`].
    pub(super) async fn connect(backend: &Backend) -> Result<Self, RelayError> {
        let stream = TokioIo::new(backend.connect().await?);
        let mut builder = http1::Builder::new();
        let handshake = builder.max_buf_size(READ_BYTES_MAX).handshake(stream);
        let (sender, connection) = handshake.await?;
        Ok(Self {
            sender,
            connection,
            over: None,
        })
    }

    /// Sends a request, and waits for the head of the answer.
    ///
    /// # Errors
    /// [`Unanswered`]
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let Self {
            sender,
            connection,
            over,
        } = self;
        let mut answer = pin!(sender.try_send_request(request));
        let answer = poll_fn(|context| {
            if over.is_none()
                && let Poll::Ready(ended) = connection.poll_without_shutdown(context)
            {
                *over = Some(ended);
            }
            answer.as_mut().poll(context)
        });
        answer
            .await
            .map_err(|mut error| match error.take_message() {
                Some(request) => Unanswered::Unsent(Box::new(request)),
                None => Unanswered::Failed(error.into_error()),
            })
    }

    /// Moves bytes both ways, until the connection has ended.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) {
        if self.over.is_none()
            && let Poll::Ready(ended) = self.connection.poll_without_shutdown(context)
        {
            // An error of the connection is also returned by the body.
            self.over = Some(ended);
        }
    }

    /// Waits until the connection has ended, as it does with 101, and returns it with what has been read of the other protocol.
    ///
    /// # Errors
    /// The connection broke.
    pub(super) async fn switch(mut self) -> Result<Parts<TokioIo<Stream>>, RelayError> {
        match self.over.take() {
            Some(ended) => ended?,
            None => poll_fn(|context| self.connection.poll_without_shutdown(context)).await?,
        }
        Ok(self.connection.into_parts())
    }

    /// Returns true if the next request can be sent: the last answer was read whole, and the server has not closed the connection.
    fn poll_free(&mut self, context: &mut Context<'_>) -> bool {
        self.poll(context);
        self.over.is_none() && matches!(self.sender.poll_ready(context), Poll::Ready(Ok(())))
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

    /// Keeps a connection whose answer has been read whole.
    pub(super) fn keep(&self, line: Line) {
        if line.over.is_some() {
            return;
        }
        let now = self.clock.now();
        let mut lines = self.lock();
        if lines.len() >= KEPT_MAX {
            lines.pop_front();
        }
        lines.push_back((line, now));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Line, Instant)>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
