//! The client of one upstream, with its own identity.
//!
//! A connection is polled by the task that asks, so it ends when the asker goes away and nothing is spawned; one whose
//! answer was read whole is kept for the next request. An answer is bounded in bytes and time; a stream in the time
//! until it begins.
//!
//! Lists may be long, and many of them come at a time; so their memory is counted while they come, and one for which
//! the memory budget has no room is given up.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::{Bytes, BytesMut};
use http::header::{self, ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use ringwatch::budget::{Account, Ledger, Share};
use ringwatch::clock::Clock;
use ringwatch::storage::StorageError;
use ringwatch_endpoints::{ForwardError, forward};
use ringwatch_http::client::{Backend, ExchangeError, KeptConnections, fetch, fetch_stream};
use ringwatch_http::{RequestBody, ResponseBody, full};
use ringwatch_tls::kubeconfig::Kubeconfig;
use ringwatch_tls::target::Target;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::error::{UpstreamError, too_late, unanswered};

/// The header `User-Agent` of the relay's own requests.
const USER_AGENT: &str = concat!("ringwatch-relay/", env!("CARGO_PKG_VERSION"));

/// Maximum time to connect to the upstream, the handshake included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time of a request and its whole answer: that which API servers give to requests.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time until a stream begins.
const STREAM_HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of bytes of an answer that is no list: an object, a definition, the resources of an API.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Maximum number of bytes of the answer to a review, such as a user with its groups.
const REVIEW_BYTES_MAX: usize = 1 << 20;
/// Maximum number of bytes of a list, if the memory budget has room for it. Pages, which have 500 objects at most, have
/// as a rule much less.
const LIST_BYTES_MAX: usize = 512 << 20;
/// The bytes of memory for a byte of a list that is read, since the buffer for it grows by doubling.
const LIST_FACTOR: u64 = 2;
/// Maximum number of bytes of a refused stream that are read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// An API server, and how to reach it.
#[derive(Debug)]
pub struct Upstream {
    /// The way to it with the newest credentials.
    way: ArcSwap<Way>,
    /// The memory budget of lists.
    memory: Ledger,
    clock: Clock,
}

/// The way to an API server with certain credentials.
#[derive(Debug)]
struct Way {
    backend: Backend,
    /// The way to it for requests that have credentials of their own.
    stranger: Backend,
    /// Host and port as requests name them.
    authority: HeaderValue,
    /// The bearer token; `None` if a client certificate or nothing proves the identity.
    authorization: Option<HeaderValue>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct WholeAnswer {
    pub(crate) status: StatusCode,
    /// True if the body is protobuf; else JSON or text.
    pub(crate) is_protobuf: bool,
    pub(crate) body: Bytes,
}

impl WholeAnswer {
    /// Returns true if the upstream has not what was asked for.
    pub(crate) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Returns true if the upstream wants to be asked later.
    pub(crate) fn is_overload(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS
    }
}

/// The answer to the request for a stream.
#[derive(Debug)]
pub(crate) enum StreamAnswer {
    /// The stream has begun; true if its frames are protobuf.
    Stream(ResponseBody, bool),
    /// The upstream has refused it.
    Refused(WholeAnswer),
}

/// The credentials that are shown with a request.
#[derive(Clone, Debug)]
pub(crate) enum ForwardedCredentials {
    /// The credentials of the client, in the header `Authorization`; none if it is `None`.
    Own(Option<HeaderValue>),
    /// The credentials of the relay.
    Relay,
}

impl Upstream {
    /// Creates the client of the server and the user of a kubeconfig's current context. Nothing is connected yet.
    ///
    /// # Errors
    /// [`UpstreamError`] when the kubeconfig lacks something, or has something that is not supported.
    pub fn new(
        kubeconfig: &Kubeconfig,
        memory: Ledger,
        clock: Clock,
    ) -> Result<Self, UpstreamError> {
        Ok(Self {
            way: ArcSwap::from_pointee(Way::new(kubeconfig, &clock)?),
            memory,
            clock,
        })
    }

    /// Uses the credentials of a kubeconfig from the next request on. Streams that have begun go on.
    ///
    /// # Errors
    /// As [`Self::new`], and [`UpstreamError::OtherServer`] when the kubeconfig has another server, whose resource
    /// versions would be others.
    pub fn use_credentials(&self, kubeconfig: &Kubeconfig) -> Result<(), UpstreamError> {
        let way = Way::new(kubeconfig, &self.clock)?;
        if way.authority != self.way.load().authority {
            return Err(UpstreamError::OtherServer);
        }
        self.way.store(Arc::new(way));
        Ok(())
    }

    /// Sends a request of a client, which is shown as that of this relay's own identity or with the client's
    /// `credentials`, and returns its answer as it comes.
    ///
    /// # Errors
    /// [`ForwardError`] when there is no answer.
    pub(crate) async fn pass_on(
        &self,
        mut request: Request<RequestBody>,
        identity: ForwardedCredentials,
    ) -> Result<Response<ResponseBody>, ForwardError> {
        let way = self.way.load_full();
        let headers = request.headers_mut();
        headers.insert(HOST, way.authority.clone());
        let authorization = match &identity {
            ForwardedCredentials::Own(credentials) => credentials.as_ref(),
            ForwardedCredentials::Relay => way.authorization.as_ref(),
        };
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let backend = match identity {
            ForwardedCredentials::Own(_) => &way.stranger,
            ForwardedCredentials::Relay => &way.backend,
        };
        forward(backend, request).await
    }

    /// Returns the clock of this client's limits.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Gets a path with its query.
    ///
    /// # Errors
    /// [`StorageError::Unreachable`] or [`StorageError::Timeout`] when there is no whole answer.
    pub(crate) async fn get(&self, path: &str, accept: &str) -> Result<WholeAnswer, StorageError> {
        self.ask(Method::GET, path, accept, None).await
    }

    /// Sends a request, with a body in JSON if there is one, and reads the whole answer.
    ///
    /// # Errors
    /// As [`Self::get`]. A write may or may not have happened.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        content: Option<Bytes>,
    ) -> Result<WholeAnswer, StorageError> {
        let way = self.way.load_full();
        let request = way.request(method, path, accept, content)?;
        self.fetch(&way, request, ANSWER_BYTES_MAX).await
    }

    /// Sends a review in JSON, and reads the whole answer.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn review(
        &self,
        path: &str,
        review: Bytes,
    ) -> Result<WholeAnswer, StorageError> {
        let way = self.way.load_full();
        let request = way.request(Method::POST, path, "application/json", Some(review))?;
        self.fetch(&way, request, REVIEW_BYTES_MAX).await
    }

    async fn fetch(
        &self,
        way: &Way,
        request: Request<RequestBody>,
        bytes_max: usize,
    ) -> Result<WholeAnswer, StorageError> {
        let fetched = fetch(&way.backend, request, bytes_max);
        let fetched = self.clock().timeout(ANSWER_TIMEOUT, fetched).await;
        let answer = fetched.map_err(|_| too_late())?;
        Ok(whole(answer.map_err(|error| unanswered(&error))?))
    }

    /// Gets a list, and the share of the memory budget in which it is counted.
    ///
    /// # Errors
    /// As [`Self::get`]; [`StorageError::OutOfMemory`] when the budget has no room for it.
    pub(crate) async fn list(
        &self,
        path: &str,
        accept: &str,
    ) -> Result<(WholeAnswer, Share), StorageError> {
        let way = self.way.load_full();
        let request = way.request(Method::GET, path, accept, None)?;
        let read = async {
            let answer = fetch_stream(&way.backend, request).await;
            let (head, body) = answer.map_err(|error| unanswered(&error))?.into_parts();
            let mut memory = self.memory.share(Account::Requests);
            let content = match head.status.is_success() {
                true => read_list(body, &mut memory).await?,
                false => read_refusal(body).await,
            };
            Ok((whole(Response::from_parts(head, content)), memory))
        };
        let read = self.clock().timeout(ANSWER_TIMEOUT, read).await;
        read.map_err(|_| too_late())?
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// [`StorageError::Unreachable`] or [`StorageError::Timeout`] when it does not begin.
    pub(crate) async fn open(
        &self,
        path: &str,
        accept: &str,
    ) -> Result<StreamAnswer, StorageError> {
        let way = self.way.load_full();
        let request = way.request(Method::GET, path, accept, None)?;
        let opened = fetch_stream(&way.backend, request);
        let opened = self.clock().timeout(STREAM_HEAD_TIMEOUT, opened).await;
        let opened = opened.map_err(|_| too_late())?;
        let (head, body) = opened.map_err(|error| unanswered(&error))?.into_parts();
        if head.status.is_success() {
            return Ok(StreamAnswer::Stream(body, is_protobuf(&head.headers)));
        }
        let refusal = read_refusal(body);
        let refusal = self.clock().timeout(STREAM_HEAD_TIMEOUT, refusal).await;
        let refusal = refusal.map_err(|_| too_late())?;
        Ok(StreamAnswer::Refused(whole(Response::from_parts(
            head, refusal,
        ))))
    }
}

impl Way {
    fn new(kubeconfig: &Kubeconfig, clock: &Clock) -> Result<Self, UpstreamError> {
        let stranger = Target::without_credentials(kubeconfig, None)?;
        let target = Target::select(kubeconfig, None)?;
        let authorization = target.token.map(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
            value.set_sensitive(true);
            Ok::<_, header::InvalidHeaderValue>(value)
        });
        let authority = HeaderValue::try_from(target.authority);
        Ok(Self {
            stranger: backend(stranger.host, stranger.port, stranger.tls, clock),
            backend: backend(target.host, target.port, target.tls, clock),
            authority: authority.map_err(|_| UpstreamError::Authority)?,
            authorization: authorization
                .transpose()
                .map_err(|_| UpstreamError::Token)?,
        })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        content: Option<Bytes>,
    ) -> Result<Request<RequestBody>, StorageError> {
        let mut builder = Request::builder().method(method).uri(path);
        builder = builder.header(HOST, &self.authority).header(ACCEPT, accept);
        builder = builder.header(header::USER_AGENT, USER_AGENT);
        if let Some(authorization) = &self.authorization {
            builder = builder.header(AUTHORIZATION, authorization);
        }
        if content.is_some() {
            builder = builder.header(CONTENT_TYPE, "application/json");
        }
        let request = builder.body(full(content.unwrap_or_default()));
        request.map_err(|error| StorageError::Internal {
            message: error.to_string(),
        })
    }
}

fn backend(
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    clock: &Clock,
) -> Backend {
    let (tls, name) = match tls {
        Some((config, name)) => (Some(config), name.to_str().into_owned()),
        None => (None, host.clone()),
    };
    Backend {
        host,
        port,
        tls,
        name,
        may_be_local: true,
        connect_timeout: CONNECT_TIMEOUT,
        bytes_per_second: None,
        kept: Some(KeptConnections::new(clock.clone())),
        clock: clock.clone(),
    }
}

/// Reads the body of a list as long as there is memory for it.
async fn read_list(mut body: ResponseBody, memory: &mut Share) -> Result<Bytes, StorageError> {
    let mut content = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unanswered(&ExchangeError::Body(error)))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if content.len() + data.len() > LIST_BYTES_MAX {
            return Err(unanswered(&ExchangeError::TooLong(LIST_BYTES_MAX)));
        }
        memory.admit(LIST_FACTOR * data.len() as u64)?;
        content.extend_from_slice(data);
    }
    Ok(content.freeze())
}

/// Reads the body of a refused stream, as far as it comes.
async fn read_refusal(mut body: ResponseBody) -> Bytes {
    let mut content = BytesMut::new();
    while content.len() < REFUSAL_BYTES_MAX
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Some(data) = frame.data_ref() {
            content.extend_from_slice(data);
        }
    }
    content.freeze()
}

fn whole(answer: Response<Bytes>) -> WholeAnswer {
    WholeAnswer {
        status: answer.status(),
        is_protobuf: is_protobuf(answer.headers()),
        body: answer.into_body(),
    }
}

fn is_protobuf(headers: &http::HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    media_type.is_some_and(|it| it.starts_with("application/vnd.kubernetes.protobuf"))
}
