//! One connection to a kubelet, or to what is proxied: name resolution, TCP and TLS, all within one limit.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

/// One that says nothing is asked for a sign of life this often; a stream may be silent for
/// hours. The operating system gives up after some unanswered ones.
const KEEP_ALIVE_SECONDS: u64 = 30;

/// What bytes go both ways over, encrypted or not.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// What a request is relayed over.
pub(super) type Stream = Box<dyn Duplex>;

/// Where a request is relayed to.
#[derive(Clone, Debug)]
pub(in super::super) struct Backend {
    /// A name or an address.
    pub(super) host: String,
    pub(in super::super) port: u16,
    /// How TLS is spoken; `None` for none.
    pub(super) tls: Option<Arc<rustls::ClientConfig>>,
    /// Connecting may take this long.
    pub(super) connect_timeout: Duration,
}

/// Why there was no answer, in the words of Go's network library where it has some.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The name does not resolve.
    #[error("dial tcp: lookup {0}: no such host")]
    Lookup(String),
    /// Nobody takes the connection.
    #[error("dial tcp {address}: {}", connect_words(.source))]
    Connect {
        /// Where.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Connecting, the handshake included, took too long.
    #[error("dial tcp {0}: i/o timeout")]
    TimedOut(String),
    /// The address is not one that a certificate can be checked for.
    #[error("tls: {0:?} is neither a name nor an address")]
    Name(String),
    /// The handshake failed.
    #[error("tls: failed to verify certificate or to shake hands: {0}")]
    Handshake(std::io::Error),
    /// The connection broke, or what came is not HTTP.
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

fn connect_words(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

impl Backend {
    /// The name or address.
    pub(in super::super) fn host(&self) -> &str {
        &self.host
    }

    /// The host and port as URLs and messages have them.
    pub(in super::super) fn authority(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{}", self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    /// Connects and shakes hands.
    pub(super) async fn connect(&self) -> Result<Stream, RelayError> {
        let connected = tokio::time::timeout(self.connect_timeout, self.shake_hands());
        let late = |_| RelayError::TimedOut(self.authority());
        connected.await.map_err(late)?
    }

    async fn shake_hands(&self) -> Result<Stream, RelayError> {
        let tcp = self.connect_tcp().await?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(tcp));
        };
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|_| RelayError::Name(self.host.clone()))?;
        let connector = TlsConnector::from(Arc::clone(tls));
        let connected = connector.connect(name, tcp).await;
        Ok(Box::new(connected.map_err(RelayError::Handshake)?))
    }

    async fn connect_tcp(&self) -> Result<TcpStream, RelayError> {
        let addresses = lookup_host((self.host.as_str(), self.port)).await;
        let addresses: Vec<_> = addresses
            .map_err(|_| RelayError::Lookup(self.host.clone()))?
            .collect();
        let refused = |source| RelayError::Connect {
            address: addresses
                .last()
                .map_or_else(|| self.authority(), ToString::to_string),
            source,
        };
        let tcp = TcpStream::connect(addresses.as_slice())
            .await
            .map_err(refused)?;
        let keep_alive = Duration::from_secs(KEEP_ALIVE_SECONDS);
        let keep_alive = TcpKeepalive::new()
            .with_time(keep_alive)
            .with_interval(keep_alive);
        let set = SockRef::from(&tcp).set_tcp_keepalive(&keep_alive);
        if let Err(error) = set.and_then(|()| tcp.set_nodelay(true)) {
            tracing::debug!(%error, "cannot set options of a relayed connection");
        }
        Ok(tcp)
    }
}
