//! Connects to another server: name resolution, TCP and TLS, all within one time limit.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::address::is_proxyable;
use super::error::ExchangeError;
use super::kept::{BackendStream, KeptConnections};

/// The period of TCP keep-alive probes on a silent connection, since a stream may be silent for hours. The operating
/// system gives up after some unanswered ones.
const KEEP_ALIVE_SECONDS: u64 = 30;

/// The server to which a request is sent.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The host name or IP address to connect to.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The client's side of TLS; `None` for plain TCP.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The name or address that the server's certificate must be for.
    pub name: String,
    /// True if the address may be a loopback or link-local one.
    pub may_be_local: bool,
    /// The bound of resolving, connecting and the handshake together.
    pub connect_timeout: Duration,
    /// The most bytes in a second in each direction of an upgraded connection; `None` for no limit.
    pub bytes_per_second: Option<NonZeroU64>,
    /// The connections that are kept for the next request; `None` if each has one of its own.
    pub kept: Option<KeptConnections>,
    /// The clock of `connect_timeout` and of that limit.
    pub clock: Clock,
}

impl Backend {
    /// Returns the host and port as URLs and messages have them.
    #[must_use]
    pub fn authority(&self) -> String {
        match self.host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{}", self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }

    /// Connects and does the TLS handshake.
    pub(super) async fn connect(&self) -> Result<BackendStream, ExchangeError> {
        let connected = self.clock.timeout(self.connect_timeout, self.shake_hands());
        let late = |_| ExchangeError::TimedOut(self.authority());
        connected.await.map_err(late)?
    }

    async fn shake_hands(&self) -> Result<BackendStream, ExchangeError> {
        let tcp = self.connect_tcp().await?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(tcp));
        };
        let name = ServerName::try_from(self.name.clone());
        let name = name.map_err(|_| ExchangeError::Name(self.name.clone()))?;
        let connector = TlsConnector::from(Arc::clone(tls));
        let connected = connector.connect(name, tcp).await;
        let failed = |source| ExchangeError::Handshake {
            name: self.name.clone(),
            source,
        };
        Ok(Box::new(connected.map_err(failed)?))
    }

    async fn connect_tcp(&self) -> Result<TcpStream, ExchangeError> {
        let addresses = lookup_host((self.host.as_str(), self.port)).await;
        let addresses: Vec<_> = addresses
            .map_err(|_| ExchangeError::Lookup(self.host.clone()))?
            .collect();
        // One forbidden address makes the whole name forbidden.
        let barred = addresses.iter().find(|it| !is_proxyable(it.ip()));
        if let Some(address) = barred.filter(|_| !self.may_be_local) {
            return Err(ExchangeError::NotAllowed(*address));
        }
        let refused = |source| ExchangeError::Connect {
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
