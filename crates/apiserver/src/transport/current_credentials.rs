//! The credentials by which the server proves its identity and judges client certificates.

use std::sync::Arc;

use ringwatch_authentication::{ClientCertificates, ExtensionAuthentication};
use ringwatch_tls::certificates::Identity;
use rustls::ServerConfig;
use tokio::sync::watch;

/// The credentials of one time.
#[derive(Debug)]
pub struct Credentials {
    /// The server's side of TLS.
    pub tls: Arc<ServerConfig>,
    /// Verifies client certificates, and derives users from them.
    pub clients: ClientCertificates,
    /// The authority that clients check the server against, in PEM.
    pub authority: String,
    /// The certificate and key of the admin's kubeconfig.
    pub admin: Identity,
    /// The authorities and headers that servers of aggregated APIs are told.
    pub extension: ExtensionAuthentication,
}

/// The newest credentials, wherever they are needed.
pub type CurrentCredentials = watch::Receiver<Arc<Credentials>>;
