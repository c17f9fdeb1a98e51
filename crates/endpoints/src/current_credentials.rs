//! The server's certificate and the verifier of client certificates, as replaced when files change.

use std::sync::Arc;

use ringwatch_authentication::{ClientCertificates, ExtensionAuthentication};
use ringwatch_http::tls::{ServingTls, TlsConfigs};
use ringwatch_tls::certificates::Identity;
use ringwatch_tls::served_certificates::Expiry;
use tokio::sync::watch;

/// The server's certificates at one time; they follow their files.
#[derive(Debug)]
pub struct Credentials {
    /// The serving side of TLS, with the certificates.
    pub tls: ServingTls,
    /// The times at which each of these certificates expires, and should have been replaced.
    pub serving_expiries: Vec<Expiry>,
    /// Verifies client certificates, and derives users from them.
    pub clients: ClientCertificates,
    /// The certificate authority by which clients verify the server, in PEM.
    pub authority: String,
    /// The certificate and key of the admin's kubeconfig.
    pub admin: Identity,
    /// The authorities and headers that servers of aggregated APIs read in a ConfigMap.
    pub extension: ExtensionAuthentication,
}

/// The newest credentials, as a channel whose receivers see each change.
pub type CurrentCredentials = watch::Receiver<Arc<Credentials>>;

/// Returns what configures the TLS of each connection by the newest credentials.
#[must_use]
pub fn tls(credentials: CurrentCredentials) -> TlsConfigs {
    Arc::new(move |tcp| credentials.borrow().tls.config(tcp))
}
