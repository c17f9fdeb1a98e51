//! One connection: the handshake, then HTTP/1.1 or HTTP/2 over it until it ends.
//!
//! HTTP is spoken over any I/O object. On HTTP/2 the writes of all streams are joined above TLS
//! ([`super::joined_io`]). On HTTP/1.1 there is nothing to join: its one stream at a time hands over
//! all it has. A watch is then written without hyper ([`super::event_stream`]).

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Method, Request, Response, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::ending::Ending;
use super::event_stream::{self, Ended, Watchful};
use super::filters::Filters;
use super::joined_io;
use super::outgoing::{CountedBody, Outgoing};
use super::preface::Prefaced;
use super::unread_body;
use crate::authentication::{ClientCertificates, Peer};
use crate::budget::Ledger;
use crate::endpoints::{BoxError, EventStream, Switched, Tunnel};

/// A client has this long for the handshake, and on HTTP/2 as long again to begin.
pub const HANDSHAKE_SECONDS_MAX: u64 = 10;
/// A client has this long to send a request's head on HTTP/1.1, and may be idle for as long.
const HEAD_SECONDS_MAX: u64 = 90;
/// The head of a request may be this large, as in kube-apiserver.
const HEAD_BYTES_MAX: u32 = 1 << 20;
/// A stream may send this much before the server has read any of it.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// All streams of a connection together may send this much ahead.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// A stream holds this much that the client has not taken; then the body waits.
const STREAM_SEND_BUFFER_BYTES: usize = 64 << 10;
/// An HTTP/2 client is asked for a sign of life this often, and has as long to give it.
const KEEP_ALIVE_SECONDS: u64 = 30;
/// Streams of an HTTP/2 connection if the flag says 0, as in kube-apiserver.
const STREAMS_MAX_DEFAULT: u32 = 100;

/// What is spoken over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One request after the other.
    Http1,
    /// Many streams at a time.
    Http2,
}

/// What all connections share.
#[derive(Clone, Debug)]
pub struct Connections {
    /// Ends in [`Filters::answer`].
    pub filters: Arc<Filters>,
    /// Does handshakes.
    pub tls: Arc<rustls::ServerConfig>,
    /// Judges client certificates.
    pub clients: ClientCertificates,
    /// How many streams an HTTP/2 connection may have; 0 for the default.
    pub streams_max: u32,
    /// What connections spend memory from.
    pub ledger: Ledger,
    /// Handshakes that failed.
    pub handshake_errors: Counter,
    /// When connections should end as soon as their requests are answered.
    pub closing: Ending,
}

/// The count of TLS handshakes that failed, made part of what `/metrics` shows.
pub fn handshake_errors(registry: &mut Registry) -> Counter {
    let counter = Counter::default();
    registry.register(
        "apiserver_tls_handshake_errors",
        "[ALPHA] Number of requests dropped with 'TLS handshake error from' error",
        counter.clone(),
    );
    counter
}

impl Connections {
    /// Does the handshake; `None` if it fails or takes too long.
    pub async fn handshake(&self, tcp: TcpStream) -> Option<Box<TlsStream<TcpStream>>> {
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let limit = Duration::from_secs(HANDSHAKE_SECONDS_MAX);
        let acceptor = TlsAcceptor::from(Arc::clone(&self.tls));
        match tokio::time::timeout(limit, acceptor.accept(tcp)).await {
            Ok(Ok(stream)) => Some(Box::new(stream)),
            Ok(Err(error)) => {
                self.handshake_errors.inc();
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
            Err(_) => {
                self.handshake_errors.inc();
                tracing::debug!("TLS handshake took too long");
                None
            }
        }
    }

    /// Serves what the handshake agreed on until the client or the server wants to end.
    ///
    /// The stream is boxed and no step is awaited that need not be, so that the task stays small: of
    /// a watch, all that is touched for an event is then in few places.
    pub fn serve(&self, stream: Box<TlsStream<TcpStream>>) -> impl Future<Output = ()> + Send {
        let session = stream.get_ref().1;
        let protocol = if session.alpn_protocol() == Some(b"h2".as_slice()) {
            Protocol::Http2
        } else {
            Protocol::Http1
        };
        let chain = session.peer_certificates().unwrap_or_default();
        let now = self.filters.clock.wall();
        let peer = Arc::new(self.clients.identify(chain, now));
        self.serve_http(stream, protocol, peer)
    }

    /// Serves HTTP over any I/O object until the client or the server wants to end.
    pub async fn serve_http<T>(&self, io: T, protocol: Protocol, peer: Arc<Peer>)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let result = match protocol {
            Protocol::Http1 => self.serve_h1(io, peer).await,
            Protocol::Http2 => match self.preface(io).await {
                Some(io) => Box::pin(self.serve_h2(io, peer)).await,
                None => return,
            },
        };
        if let Err(error) = result {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    /// Waits until an HTTP/2 client begins; `None` if it takes too long or the server ends.
    async fn preface<T: AsyncRead + Unpin>(&self, io: T) -> Option<Prefaced<T>> {
        let limit = Duration::from_secs(HANDSHAKE_SECONDS_MAX);
        tokio::select! {
            read = tokio::time::timeout(limit, Prefaced::read(io)) => match read {
                Ok(Ok(io)) => Some(io),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a connection ended before it began");
                    None
                }
                Err(_) => {
                    tracing::debug!("an HTTP/2 client said nothing");
                    None
                }
            },
            () = self.closing.cancelled() => None,
        }
    }

    /// Serves HTTP/1.1: requests in turn by hyper, and the watches and tunnels among them without it.
    async fn serve_h1<T>(&self, mut io: T, peer: Arc<Peer>) -> Result<(), BoxError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let outgoing = Outgoing::new(&self.ledger);
        loop {
            // What a watch needs lies together, and apart from what only requests need.
            let requests = Box::pin(self.answer_until_taken(io, &peer, &outgoing));
            let Some(Taken {
                io: taken,
                unread,
                answer: mut watch,
            }) = requests.await?
            else {
                return Ok(());
            };
            if let Some(kubelet) = tunnel(&watch) {
                return Box::pin(self.join(taken, &unread, watch, kubelet)).await;
            }
            if !unread.is_empty() {
                // The client has sent its next request already, and sends it again elsewhere.
                close_after(&mut watch);
            }
            // Even if nothing is in it, it is a buffer of 8 KiB.
            drop(unread);
            let last = watch.headers().contains_key(CONNECTION);
            let watch = watch.map(CountedBody::alone);
            let begun = event_stream::begin(taken, watch, &self.filters.clock).await?;
            let mut delivery = Box::new(begun);
            let ended = poll_fn(|context| delivery.poll(context)).await?;
            let mut taken = delivery.into_io();
            if last || ended == Ended::Gone || self.closing.is_cancelled() {
                taken.shutdown().await?;
                return Ok(());
            }
            io = taken;
        }
    }

    /// Writes the head of an answer, and then has what the client and the kubelet say to each other
    /// copied until one of them or the server ends.
    async fn join<T>(
        &self,
        mut client: T,
        unread: &[u8],
        answer: Response<CountedBody>,
        kubelet: Switched,
    ) -> Result<(), BoxError>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let head = event_stream::head(&answer, &[], self.filters.clock.wall())?;
        client.write_all(&head).await?;
        client.flush().await?;
        tokio::select! {
            joined = kubelet.join(client, unread) => Ok(joined?),
            () = self.filters.end_of_watches.cancelled() => Ok(()),
        }
    }

    /// Answers requests until the connection ends or one is answered by a watch or a tunnel, which is
    /// left to the caller.
    async fn answer_until_taken<T>(
        &self,
        io: T,
        peer: &Arc<Peer>,
        outgoing: &Outgoing,
    ) -> Result<Option<Taken<T>>, BoxError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (io, waiting) = Watchful::new(io);
        let (hand_over, mut answers) = mpsc::channel(1);
        // hyper keeps room for a future of the service as long as there is a connection: let it be that of a
        // pointer. What makes an answer has thousands of bytes.
        let service = service_fn(|request: Request<Incoming>| {
            Box::pin(async {
                let (takes_chunks, last) = (takes_chunks(&request), is_last(&request));
                let mut response = self.answer(request, peer.clone(), outgoing.clone()).await?;
                let watch = response.extensions().get::<EventStream>().is_some();
                let tunnel = response.extensions().get::<Tunnel>().is_some();
                if (takes_chunks && watch || tunnel) && !waiting.is_waiting() {
                    if last {
                        close_after(&mut response);
                    }
                    // There is room, since this is the only one, and somebody who receives it.
                    let _ = hand_over.send(response).await;
                    return std::future::pending().await;
                }
                Ok::<_, Infallible>(response)
            })
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(HEAD_SECONDS_MAX))
            .max_buf_size(HEAD_BYTES_MAX as usize)
            .serve_connection(TokioIo::new(io), service);
        let mut closing = false;
        let mut abandoned = pin!(self.abandoned(outgoing));
        loop {
            tokio::select! {
                biased;
                result = &mut connection => return result.map(|()| None).map_err(Into::into),
                Some(answer) = answers.recv() => {
                    let parts = connection.into_parts();
                    return Ok(Some(Taken {
                        io: parts.io.into_inner().into_inner(),
                        unread: parts.read_buf,
                        answer,
                    }));
                }
                () = self.closing.cancelled(), if !closing => {
                    closing = true;
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                }
                () = abandoned.as_mut() => return Err(abandonment()),
            }
        }
    }

    async fn serve_h2<T>(&self, io: T, peer: Arc<Peer>) -> Result<(), BoxError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let outgoing = Outgoing::new(&self.ledger);
        let counted = outgoing.clone();
        let mut abandoned = pin!(self.abandoned(&counted));
        // Streams are tasks of their own and may outlive this call's borrow.
        let filters = Arc::clone(&self.filters);
        let service = service_fn(move |request| {
            // A stream's task is as large as the larger of what makes its answer and what writes it,
            // so the first must not be a part of it: of a watch it would stay for good.
            let answer = answer(
                Arc::clone(&filters),
                request,
                peer.clone(),
                outgoing.clone(),
            );
            Box::pin(answer)
        });
        let streams_max = match self.streams_max {
            0 => STREAMS_MAX_DEFAULT,
            streams => streams,
        };
        let (io, mut turns) = joined_io::join(io);
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
        tokio::select! {
            result = turns.drive(connection.as_mut()) => return Ok(result??),
            () = self.closing.cancelled() => connection.as_mut().graceful_shutdown(),
            () = abandoned.as_mut() => return Err(abandonment()),
        }
        tokio::select! {
            result = turns.drive(connection) => Ok(result??),
            () = abandoned => Err(abandonment()),
        }
    }

    /// Completes when the client leaves an answer unread for longer than a request may take.
    async fn abandoned(&self, outgoing: &Outgoing) {
        let Filters { clock, limits, .. } = &*self.filters;
        outgoing.abandoned(clock, limits.request_timeout).await;
    }

    /// Answers a request of HTTP/1.1, whose connection goes on only when its body is at its end.
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: Arc<Peer>,
        outgoing: Outgoing,
    ) -> Result<Response<CountedBody>, Infallible> {
        // A client that waits to be told to go on would be told so by reading.
        let waits = request.headers().contains_key(EXPECT);
        let (parts, body) = request.into_parts();
        let (lent, lender) = unread_body::lend(body);
        let request = Request::from_parts(parts, lent);
        let Ok(mut response) = answer(Arc::clone(&self.filters), request, peer, outgoing).await;
        if !waits && !lender.finish().await {
            close_after(&mut response);
        }
        Ok(response)
    }
}

/// A connection taken from hyper, with the answer to its last request.
struct Taken<T> {
    io: T,
    /// What the client has sent behind that request.
    unread: Bytes,
    answer: Response<CountedBody>,
}

/// The kubelet's side, if the answer is that client and kubelet are to be joined.
fn tunnel(answer: &Response<CountedBody>) -> Option<Switched> {
    answer.extensions().get::<Tunnel>().and_then(Tunnel::take)
}

/// Whether a watch that answers the request may be written in chunks, and as soon as it begins.
fn takes_chunks<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && !request.headers().contains_key(EXPECT)
}

/// Whether the client wants the connection closed after the answer.
fn is_last<B>(request: &Request<B>) -> bool {
    let options = request.headers().get_all(CONNECTION).into_iter();
    let options = options.filter_map(|value| value.to_str().ok());
    let mut options = options.flat_map(|value| value.split(','));
    options.any(|option| option.trim().eq_ignore_ascii_case("close"))
}

/// Tells the client that the connection will be closed after the answer.
fn close_after<B>(response: &mut Response<B>) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
}

/// Why a connection ends whose client leaves an answer unread.
fn abandonment() -> BoxError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

async fn answer<B>(
    filters: Arc<Filters>,
    request: Request<B>,
    peer: Arc<Peer>,
    outgoing: Outgoing,
) -> Result<Response<CountedBody>, Infallible>
where
    B: Body<Data = Bytes, Error = hyper::Error> + Send + 'static,
{
    let request = request.map(|body| {
        body.map_err(|error| -> BoxError { Box::new(error) })
            .boxed_unsync()
    });
    let response = filters.answer(request, &peer).await;
    Ok(response.map(|body| outgoing.count(body)))
}

#[cfg(test)]
mod tests;
