//! The client: makes requests and reads watches. It is lean, since it shares the machine with the server that it
//! measures.
//!
//! ```text
//! let client = Client::new(target, HttpVersion::One)?;
//! let mut connection = client.connect().await?;
//! let answer = connection.request(Request::get("/version")).await?.success()?;
//! let mut watch = client.watch("/api/v1/configmaps?watch=true", Encoding::Json).await?;
//! while let Some(event) = watch.next().await? {
//!     // event.kind, event.revision, event.object
//! }
//! ```
//!
//! [`Client::watch`] gives a watch a connection of its own; [`Connection::watch`] opens one on a
//! connection that is there, which over HTTP/2 many may share. [`Watch::read`] hands over events
//! without copying them, for those who read thousands; [`Watch::next`] one after the other. Dropping
//! a watch ends it.
//!
//! Every wait has a bound but that for a watch's next event: who reads a watch knows how long.

mod chunks;
mod connection;
mod event;
mod field;
mod frames;
mod list_head;
pub(crate) mod protobuf;
mod request;
mod status;
mod stream;
mod tls;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use rustls::ClientConfig;
use serde::Serialize;
use thiserror::Error;

pub(crate) use connection::Connection;
pub(crate) use event::{EventKind, OwnedEvent, ReceivedEvent};
pub(crate) use field::{DigitField, leading_number};
pub(crate) use list_head::ListHead;
pub(crate) use request::{ClientRequest, RequestContent, Response};
pub(crate) use status::StatusFailure;
pub(crate) use watch::Watch;

use super::target::{LoadTarget, TargetError};
use stream::{Buffers, ByteStream};
pub use stream::{Connect, Transport};

/// Connecting, and every request, must be done within this time.
const REQUEST_MAX: Duration = Duration::from_secs(60);

/// The version of HTTP that a connection speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
pub enum HttpVersion {
    /// HTTP/1.1, with a connection for each watch.
    #[value(name = "1")]
    #[serde(rename = "1")]
    One,
    /// HTTP/2.
    #[value(name = "2")]
    #[serde(rename = "2")]
    Two,
}

/// The form of objects on the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    /// Returns the media type of objects.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// Returns the media type of a watch.
    fn stream_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }
}

/// Makes connections to a server, or to those of a cluster in turn. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// The server of this connection.
    target: Arc<LoadTarget>,
    /// All servers, and the number of connections that were made to them.
    servers: Arc<(Vec<Arc<LoadTarget>>, AtomicUsize)>,
    tls: Option<Arc<ClientConfig>>,
    http: HttpVersion,
    /// Makes the connections, if not the system.
    connect: Option<Arc<dyn Connect>>,
}

/// The reason why a request has no answer, or a watch no further events.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("cannot connect to {address}: {why}")]
    Connect { address: String, why: String },
    /// The connection broke, and nobody knows if the request was received.
    #[error("{0}")]
    Broken(String),
    /// The connection had ended before the request was sent: another one can be asked.
    #[error("{0}")]
    Unsent(String),
    /// The server answered with a status that is no success, or a watch with an error.
    #[error("{code} {message}")]
    Refused { code: u16, message: String },
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("the answer cannot be read: {0}")]
    Malformed(&'static str),
}

impl ClientError {
    /// Returns true if the position of a watch is gone, so that only a list can go on.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { code: 410, .. })
    }
}

impl Client {
    /// Returns a client of a server.
    ///
    /// # Errors
    /// The credentials cannot be used.
    pub(crate) fn new(target: LoadTarget, http: HttpVersion) -> Result<Self, TargetError> {
        Self::of_cluster(target, Vec::new(), http)
    }

    /// Returns a client of a server and of others that have the same credentials.
    ///
    /// # Errors
    /// The credentials cannot be used.
    pub(crate) fn of_cluster(
        first: LoadTarget,
        others: Vec<LoadTarget>,
        http: HttpVersion,
    ) -> Result<Self, TargetError> {
        let first = Arc::new(first);
        let mut servers = vec![Arc::clone(&first)];
        servers.extend(others.into_iter().map(Arc::new));
        let tls = if first.tls {
            Some(tls::config(&first.credentials, http)?)
        } else {
            None
        };
        Ok(Self {
            target: first,
            servers: Arc::new((servers, AtomicUsize::new(0))),
            tls,
            http,
            connect: None,
        })
    }

    /// Returns a client whose connections somebody else makes, and over which it speaks without TLS.
    pub(crate) fn over(connect: Arc<dyn Connect>, token: String, http: HttpVersion) -> Self {
        let target = Arc::new(LoadTarget::unnamed(token));
        Self {
            servers: Arc::new((vec![Arc::clone(&target)], AtomicUsize::new(0))),
            target,
            tls: None,
            http,
            connect: Some(connect),
        }
    }

    /// Returns the version of HTTP that its connections speak.
    pub(crate) fn http(&self) -> HttpVersion {
        self.http
    }

    /// Returns the transport in words, such as `HTTP/2 over TLS`, for the setting of an outcome.
    pub(crate) fn transport(&self) -> String {
        let version = match self.http {
            HttpVersion::One => "HTTP/1.1",
            HttpVersion::Two => "HTTP/2",
        };
        let tls = if self.tls.is_some() { " over TLS" } else { "" };
        format!("{version}{tls}")
    }

    /// Opens a new connection.
    pub(crate) async fn connect(&self) -> Result<Connection, ClientError> {
        let connecting = async {
            let client = self.turned();
            let stream = ByteStream::connect(&client, Buffers::Usual).await?;
            Connection::over(&client, stream).await
        };
        within_bound(connecting).await
    }

    /// Opens a watch on a connection of its own. `path` has the query with it.
    pub(crate) async fn watch(&self, path: &str, encoding: Encoding) -> Result<Watch, ClientError> {
        self.watch_over(path, encoding, Buffers::Usual).await
    }

    /// Opens a watch like [`Self::watch`], with socket buffers so small that the server soon feels when nobody reads.
    pub(crate) async fn watch_with_small_buffers(
        &self,
        path: &str,
        encoding: Encoding,
    ) -> Result<Watch, ClientError> {
        self.watch_over(path, encoding, Buffers::Small).await
    }

    async fn watch_over(
        &self,
        path: &str,
        encoding: Encoding,
        buffers: Buffers,
    ) -> Result<Watch, ClientError> {
        let opening = async {
            let client = self.turned();
            let stream = ByteStream::connect(&client, buffers).await?;
            match self.http {
                HttpVersion::One => Watch::over(&client, stream, path, encoding).await,
                HttpVersion::Two => {
                    let mut connection = Connection::over(&client, stream).await?;
                    connection.watch(path, encoding).await
                }
            }
        };
        within_bound(opening).await
    }

    /// Returns a client of the server whose turn it is.
    fn turned(&self) -> Self {
        let (servers, connections) = &*self.servers;
        // Relaxed: the number orders nothing else.
        let turn = connections.fetch_add(1, Ordering::Relaxed) % servers.len();
        Self {
            target: Arc::clone(&servers[turn]),
            ..self.clone()
        }
    }

    /// Returns the value of the authorization header.
    fn authorization(&self) -> Option<String> {
        let token = self.target.credentials.token.as_ref();
        token.map(|token| format!("Bearer {token}"))
    }
}

async fn within_bound<T>(
    doing: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    let done = tokio::time::timeout(REQUEST_MAX, doing).await;
    done.unwrap_or(Err(ClientError::Timeout(REQUEST_MAX)))
}
