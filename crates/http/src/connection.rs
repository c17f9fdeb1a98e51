//! One connection: the handshake, then HTTP/1.1 or HTTP/2 over it until it ends.
//!
//! HTTP runs over any I/O object. On HTTP/2 the writes of all streams are batched above TLS (`super::joined_io`).
//! HTTP/1.1 has one stream at a time, so there is nothing to batch; a watch is then written without hyper
//! (`super::event_stream`).

mod http2;

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::body::{Body, BoxError, EventStream};
use super::cancellation::CancellationFlag;
use super::event_stream::{self, StreamEnd, WriteBacklog};
use super::layered_io::LayeredIo;
use super::outgoing::{CountedBody, Outgoing};
use super::preface::{Preface, read_preface};
use super::request_head::{check_head, is_last, takes_chunks};
use super::service::{NewService, Peer, Service};
use super::tls::TlsConfigs;
use super::tunnel::{Tunnel, UpgradedProtocol};
use super::unauthenticated::{
    ClientIo, ClientStanding, FirstHeads, Heads, Judgement, UnauthenticatedConnections,
};
use super::unread_body;

/// Maximum time for the TLS handshake, in seconds, and on HTTP/2 the same again for the preface.
const HANDSHAKE_SECONDS_MAX: u64 = 10;
/// The time after which a connection without a request in progress is closed, as in kube-apiserver. On HTTP/1.1 an
/// authenticated client has as long to send a request's head.
const IDLE: Duration = Duration::from_secs(90);
/// Maximum size of a request's head, as in kube-apiserver.
const HEAD_BYTES_MAX: u32 = 1 << 20;
/// Time for a client to read the response before its connection is closed.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);
/// Maximum number of bytes that are read and discarded meanwhile.
const LAST_WORDS_BYTES_MAX: u64 = 256 << 10;
/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1: one request after the other.
    Http1,
    /// HTTP/2: many streams at a time.
    Http2,
}

/// The state and settings that all connections share.
#[derive(Clone)]
pub struct Connections {
    /// Makes the service of each connection.
    pub service: NewService,
    /// Maximum time of a request: an answer that its client leaves unread for longer ends the connection.
    pub request_timeout: Duration,
    /// Maximum number of streams of an HTTP/2 connection; 0 for the default.
    pub streams_max: u32,
    /// The memory budget of connections.
    pub ledger: Ledger,
    /// The connections whose client is not authenticated yet.
    pub unauthenticated: UnauthenticatedConnections,
    /// The count of TLS handshakes that failed.
    pub handshake_errors: Counter,
    /// Cancelled when connections should end as soon as their requests are answered.
    pub closing: CancellationFlag,
    /// Cancelled when the server ends, which ends protocols that connections have switched to.
    pub end_of_watches: CancellationFlag,
    /// The clock of all timeouts.
    pub clock: Clock,
}

impl fmt::Debug for Connections {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Connections")
            .finish_non_exhaustive()
    }
}

/// Registers the count of TLS handshakes that failed with the metrics.
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
    pub(super) async fn handshake(
        &self,
        tcp: TcpStream,
        tls: TlsConfigs,
        standing: &ClientStanding,
    ) -> Option<Box<TlsStream<ClientIo<TcpStream>>>> {
        if let Err(error) = tcp.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let limit = Duration::from_secs(HANDSHAKE_SECONDS_MAX);
        let acceptor = TlsAcceptor::from(tls(&tcp));
        let io = ClientIo::new(tcp, standing.clone());
        let handshake = self.clock.timeout(limit, acceptor.accept(io));
        match handshake.await {
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

    /// Serves the negotiated protocol until the client or the server wants to end.
    ///
    /// The stream is boxed and unnecessary awaits are avoided, so that the task stays small: a watch then touches few
    /// cache lines for an event.
    pub(super) fn serve(
        &self,
        stream: Box<TlsStream<ClientIo<TcpStream>>>,
        standing: &ClientStanding,
    ) -> impl Future<Output = ()> + Send {
        let session = stream.get_ref().1;
        let protocol = if session.alpn_protocol() == Some(b"h2".as_slice()) {
            Protocol::Http2
        } else {
            Protocol::Http1
        };
        let chain = session.peer_certificates().unwrap_or_default();
        let certificates = chain.iter().map(|it| it.clone().into_owned());
        let tcp = stream.get_ref().0.get_ref();
        let peer = Peer {
            address: tcp.peer_addr().ok(),
            certificates: certificates.collect(),
            standing: standing.clone(),
        };
        self.serve_client(stream, protocol, peer)
    }

    /// Serves HTTP over an I/O object that no limit of connections counts, until the client or the server wants to end.
    pub async fn serve_http<T>(&self, io: T, protocol: Protocol)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let peer = Peer {
            address: None,
            certificates: Vec::new(),
            standing: ClientStanding::uncounted(),
        };
        self.serve_client(io, protocol, peer).await;
    }

    async fn serve_client<T>(&self, io: T, protocol: Protocol, peer: Peer)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let client = Client {
            service: (self.service)(&peer),
            peer: Arc::new(peer),
            outgoing: Outgoing::new(&self.ledger),
        };
        let result = match protocol {
            Protocol::Http1 => self.serve_h1(io, client).await,
            Protocol::Http2 => match self.preface(io).await {
                Some(io) => Box::pin(self.serve_h2(io, client)).await,
                None => return,
            },
        };
        if let Err(error) = result {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    /// Waits until an HTTP/2 client begins; `None` if it takes too long or the server ends.
    async fn preface<T: AsyncRead + Unpin>(&self, io: T) -> Option<LayeredIo<T, Preface>> {
        let limit = Duration::from_secs(HANDSHAKE_SECONDS_MAX);
        tokio::select! {
            read = self.clock.timeout(limit, read_preface(io)) => match read {
                Ok(Ok(io)) => Some(io),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a connection ended before it began");
                    None
                }
                Err(_) => {
                    tracing::debug!("an HTTP/2 client sent nothing");
                    None
                }
            },
            () = self.closing.cancelled() => None,
        }
    }

    /// Serves HTTP/1.1: requests in turn by hyper, and the watches and tunnels among them without it.
    async fn serve_h1<T>(&self, mut io: T, client: Client) -> Result<(), BoxError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        loop {
            // The state of a watch is apart from that of requests, so that it is contiguous.
            let requests = Box::pin(self.answer_until_taken(io, &client));
            let Some(TakenConnection {
                io: taken,
                unread,
                answer: mut watch,
            }) = requests.await?
            else {
                return Ok(());
            };
            if let Some(upgraded) = tunnel(&watch) {
                return Box::pin(self.switch(taken, unread, watch, upgraded)).await;
            }
            if !unread.is_empty() {
                // The client has pipelined its next request; it repeats that on another connection.
                close_after(&mut watch);
            }
            // Dropped even if empty, since it is a buffer of 8 KiB.
            drop(unread);
            let last = watch.headers().contains_key(CONNECTION);
            let watch = watch.map(CountedBody::alone);
            let begun = event_stream::begin(taken, watch, &self.clock).await?;
            let mut delivery = Box::new(begun);
            let ended = poll_fn(|context| delivery.poll(context)).await?;
            let mut taken = delivery.into_io();
            if last || ended == StreamEnd::Gone || self.closing.is_cancelled() {
                tokio::select! {
                    ended = taken.shutdown() => ended?,
                    // The client does not read, so the connection is closed without its last bytes.
                    () = self.clock.sleep(LAST_WORDS_MAX) => {}
                }
                return Ok(());
            }
            io = taken;
        }
    }

    /// Writes the head of the response, and then speaks the protocol that the connection has switched to until one side
    /// ends, or the server ends it.
    async fn switch<T>(
        &self,
        mut client: T,
        unread: Bytes,
        answer: Response<CountedBody>,
        upgraded: Box<dyn UpgradedProtocol>,
    ) -> Result<(), BoxError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let head = event_stream::head(&answer, &[], self.clock.wall())?;
        event_stream::write_head(&mut client, &head, &self.clock).await?;
        // The body is held for what the request holds, such as a place among the watches of its user.
        let mut held = answer.into_body();
        let end_of_watches = &self.end_of_watches;
        let all = end_of_watches.cancelled();
        let end = async move {
            tokio::select! { () = held.told_to_end() => {}, () = all => {} }
        };
        let cut_off = async {
            end_of_watches.cancelled().await;
            self.clock.sleep(LAST_WORDS_MAX).await;
        };
        tokio::select! {
            ended = upgraded.run(Box::new(client), unread, Box::pin(end)) => Ok(ended?),
            // The client does not read, so the connection is closed without its last bytes.
            () = cut_off => Ok(()),
        }
    }

    /// Answers requests until the connection ends or one is answered by a watch or a tunnel, which is
    /// left to the caller.
    async fn answer_until_taken<T>(
        &self,
        io: T,
        client: &Client,
    ) -> Result<Option<TakenConnection<T>>, BoxError>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let waiting = WriteBacklog::default();
        let io = LayeredIo::new(io, waiting.clone());
        let heads = Heads::new(client.outgoing.share());
        let first_heads = FirstHeads::new(&heads, &client.peer.standing, &self.clock);
        let io = LayeredIo::new(io, first_heads);
        let (hand_over, mut answers) = mpsc::channel(1);
        // hyper stores the service's future in the connection for its lifetime. It is boxed, since it has thousands of
        // bytes.
        let service = service_fn(|request: Request<Incoming>| {
            Box::pin(async {
                heads.end();
                let (takes_chunks, last) = (takes_chunks(&request), is_last(&request));
                let mut response = self.answer(request, client.clone()).await?;
                heads.begin();
                let watch = response.extensions().get::<EventStream>().is_some();
                let tunnel = response.extensions().get::<Tunnel>().is_some();
                if (takes_chunks && watch || tunnel) && !waiting.is_waiting() {
                    if last {
                        close_after(&mut response);
                    }
                    // The channel has room, since this is its only message, and its receiver exists.
                    let _ = hand_over.send(response).await;
                    return std::future::pending().await;
                }
                Ok::<_, Infallible>(response)
            })
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(HEAD_BYTES_MAX as usize)
            .serve_connection(TokioIo::new(io), service);
        let mut closing = false;
        let mut abandoned = pin!(self.abandoned(&client.outgoing));
        loop {
            tokio::select! {
                biased;
                result = &mut connection => {
                    if let Some(refusal) = heads.refusal() {
                        let io = connection.into_parts().io.into_inner();
                        let io = io.into_inner().into_inner();
                        say_last(io, refusal.answer(), &self.clock).await;
                    }
                    return result.map(|()| None).map_err(Into::into);
                }
                Some(answer) = answers.recv() => {
                    let parts = connection.into_parts();
                    return Ok(Some(TakenConnection {
                        io: parts.io.into_inner().into_inner().into_inner(),
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

    /// Completes when the client leaves an answer unread for longer than a request may take.
    async fn abandoned(&self, outgoing: &Outgoing) {
        let at_most = self.request_timeout;
        outgoing.abandoned(&self.clock, at_most).await;
    }

    /// Answers an HTTP/1.1 request. The connection continues only if the request body has been read to its end.
    async fn answer(
        &self,
        request: Request<Incoming>,
        client: Client,
    ) -> Result<Response<CountedBody>, Infallible> {
        // Reading would send `100 Continue` to a client that waits for it.
        let waits = request.headers().contains_key(EXPECT);
        let (parts, body) = request.into_parts();
        let (lent, lender) = unread_body::lend(body);
        let request = Request::from_parts(parts, lent);
        let Ok(mut response) = answer(request, client).await;
        if !waits && !lender.finish(&self.clock).await {
            close_after(&mut response);
        }
        Ok(response)
    }
}

/// The state that the requests of a connection have in common.
#[derive(Clone)]
struct Client {
    /// Answers the requests.
    service: Arc<dyn Service>,
    peer: Arc<Peer>,
    outgoing: Outgoing,
}

/// A connection taken from hyper, with the response to its last request.
struct TakenConnection<T> {
    io: T,
    /// The bytes that the client has sent behind that request.
    unread: Bytes,
    answer: Response<CountedBody>,
}

/// Returns the protocol that the connection switches to; `None` for other responses.
fn tunnel(answer: &Response<CountedBody>) -> Option<Box<dyn UpgradedProtocol>> {
    answer.extensions().get::<Tunnel>().and_then(Tunnel::take)
}

/// Marks the connection to be closed after the response: `Connection: close`.
fn close_after<B>(response: &mut Response<B>) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
}

/// Writes the last response of a connection and closes it, while the client may still be sending.
async fn say_last<T>(mut io: T, answer: &[u8], clock: &Clock)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let said = async {
        io.write_all(answer).await?;
        io.shutdown().await?;
        // A connection closed with unread bytes is reset, and the response would be lost.
        let mut rest = io.take(LAST_WORDS_BYTES_MAX);
        let unread = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        if unread == LAST_WORDS_BYTES_MAX {
            // There may be more: the client has the rest of its time to read the answer.
            std::future::pending::<()>().await;
        }
        Ok::<_, io::Error>(())
    };
    if let Ok(Err(error)) = clock.timeout(LAST_WORDS_MAX, said).await {
        tracing::debug!(%error, "cannot send the last answer of a connection");
    }
}

/// Returns the error with which a connection ends whose client leaves a response unread.
fn abandonment() -> BoxError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

async fn answer<B>(request: Request<B>, client: Client) -> Result<Response<CountedBody>, Infallible>
where
    B: HttpBody<Data = Bytes, Error = hyper::Error> + Send + 'static,
{
    let answering = client.outgoing.begin();
    let peer = &client.peer;
    if let Err(refused) = check_head(&request) {
        peer.judge(Judgement::Skipped);
        let mut response = refused.response().map(Body::from);
        close_after(&mut response);
        return Ok(response.map(|body| answering.count(body)));
    }
    let request = request.map(|body| {
        body.map_err(|error| -> BoxError { Box::new(error) })
            .boxed_unsync()
    });
    let answer = peer.standing.answer();
    let response = client.service.answer(request, peer).await;
    drop(answer);
    Ok(response.map(|body| answering.count(body)))
}

#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
#[cfg(test)]
mod tests;
