//! The errors of requests to other servers.

use std::io::ErrorKind;
use std::net::SocketAddr;

use rustls::CertificateError;

use crate::body::BoxError;

/// The failure to get a response, in the words of Go's network library where it has some.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The name does not resolve.
    #[error("dial tcp: lookup {0}: no such host")]
    Lookup(String),
    /// The address is a loopback or link-local one, which clients may not reach through this server.
    #[error("dial tcp {0}: address not allowed")]
    NotAllowed(SocketAddr),
    /// The TCP connection cannot be established.
    #[error("dial tcp {address}: {}", connect_words(.source))]
    Connect {
        /// The host and port that was dialled.
        address: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Connecting, the handshake included, took too long.
    #[error("dial tcp {0}: i/o timeout")]
    TimedOut(String),
    /// The address is not one that a certificate can be checked for.
    #[error("tls: {0:?} is neither a name nor an address")]
    Name(String),
    /// The TLS handshake failed; for certificates the message is Go's.
    #[error("{}", handshake_words(.source, .name))]
    Handshake {
        /// The expected name or address.
        name: String,
        /// The error of the TLS library.
        source: std::io::Error,
    },
    /// The connection broke, or the response is not HTTP.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// The body of the answer broke off.
    #[error("{0}")]
    Body(BoxError),
    /// The server has closed the connection at once.
    #[error("the connection was closed before the request was sent")]
    Closed,
    /// The response is longer than the limit, in bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

fn connect_words(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

/// Describes a failed handshake, in Go's words as far as it is about certificates.
fn handshake_words(error: &std::io::Error, name: &str) -> String {
    let inner = error.get_ref().and_then(|it| it.downcast_ref());
    let Some(rustls::Error::InvalidCertificate(wrong)) = inner else {
        return format!("tls: {error}");
    };
    let why = match wrong {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("certificate is not valid for {name}")
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}
