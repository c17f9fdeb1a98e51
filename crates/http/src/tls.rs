//! The serving side of TLS: the certificates, the protocol, and the client certificates that it asks for.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ringwatch_tls::client_verifier::AnyClient;
use ringwatch_tls::error::StartError;
use ringwatch_tls::protocol::TlsProtocol;
use ringwatch_tls::served_certificates::ServedCertificates;
use rustls::{DistinguishedName, ServerConfig};
use tokio::net::TcpStream;

/// The protocols above TLS, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [HTTP2, b"http/1.1"];
const HTTP2: &[u8] = b"h2";

/// Returns the newest configuration of TLS for a connection that has been accepted.
pub type TlsConfigs = Arc<dyn Fn(&TcpStream) -> Arc<ServerConfig> + Send + Sync>;

/// The configurations of connections, which differ by the certificate for clients that ask for no name.
#[derive(Debug)]
pub struct ServingTls {
    default: Arc<ServerConfig>,
    /// By the address of this machine to which a connection leads.
    by_address: HashMap<IpAddr, Arc<ServerConfig>>,
}

impl ServingTls {
    /// Makes the configurations. Clients choose their certificate by the names of these authorities, and may show
    /// others: the service judges them.
    ///
    /// # Errors
    /// The settings of the protocol contradict each other.
    pub fn new(
        certificates: &ServedCertificates,
        protocol: &TlsProtocol,
        authorities: Vec<DistinguishedName>,
    ) -> Result<Self, StartError> {
        let verifier = Arc::new(AnyClient::new(authorities));
        let mut config = ServerConfig::builder_with_provider(Arc::new(protocol.provider()))
            .with_protocol_versions(protocol.versions())
            .map_err(|error| {
                let advice = "choose others with --tls-cipher-suites and --tls-curve-preferences";
                StartError::new("offer TLS", error, advice)
            })?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(certificates.resolver());
        let offered = PROTOCOLS
            .into_iter()
            .filter(|it| protocol.http2 || *it != HTTP2);
        config.alpn_protocols = offered.map(<[u8]>::to_vec).collect();
        let by_address = certificates.by_address().into_iter();
        let by_address = by_address.map(|(address, resolver)| {
            let mut config = config.clone();
            config.cert_resolver = resolver;
            (address, Arc::new(config))
        });
        Ok(Self {
            by_address: by_address.collect(),
            default: Arc::new(config),
        })
    }

    /// Returns the configuration for a connection.
    #[must_use]
    pub fn config(&self, tcp: &TcpStream) -> Arc<ServerConfig> {
        let special = if self.by_address.is_empty() {
            None
        } else {
            let address = tcp.local_addr().ok().map(|local| local.ip().to_canonical());
            address.and_then(|address| self.by_address.get(&address))
        };
        Arc::clone(special.unwrap_or(&self.default))
    }
}
