//! The server of a kubeconfig and the user's credentials for it.

use std::path::Path;
use std::sync::Arc;

use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::client_identity::ClientIdentity;
use super::kubeconfig::{Kubeconfig, KubeconfigError, Selection, UnreadSignIn};
use super::tls_client::{self, Trust};

/// The header `User-Agent` of requests that a command of this program makes to the server of a kubeconfig.
pub const USER_AGENT: &str = concat!("ringwatch/", env!("CARGO_PKG_VERSION"));

/// The failure to find a server and credentials in a kubeconfig.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The kubeconfig cannot be used; name another one.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The kubeconfig has this, which is not supported; use a token or a client certificate, and an https or http
    /// server.
    #[error("{0}")]
    Unsupported(String),
}

/// A server, and how to prove to it who asks.
pub struct Target {
    /// Host and port as requests name them.
    pub authority: String,
    /// The host to connect to.
    pub host: String,
    /// The port to connect to.
    pub port: u16,
    /// The client's side of TLS and the name in the server's certificate; `None` for a server without TLS.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// The bearer token.
    pub token: Option<String>,
}

/// Tells where the server is, and no secret.
impl std::fmt::Debug for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Target")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// Reads the server and the user of a context of a kubeconfig, of the current one if `context` is `None`.
    ///
    /// # Errors
    /// [`TargetError`] says what of the kubeconfig cannot be used.
    pub fn read(path: &Path, context: Option<&str>) -> Result<Self, TargetError> {
        let config = Kubeconfig::read(path)?;
        Self::select(&config, context)
    }

    /// Returns the server and the user of a context of a kubeconfig, of the current one if `context` is `None`.
    ///
    /// # Errors
    /// [`TargetError`] says what of the kubeconfig cannot be used.
    pub fn select(config: &Kubeconfig, context: Option<&str>) -> Result<Self, TargetError> {
        let selection = config.select(context)?;
        let identity = identity(&selection)?;
        Self::of_selection(&selection, identity.as_ref())
    }

    /// Returns the server of a context of a kubeconfig, of the current one if `context` is `None`, for requests that
    /// have credentials of their own: no certificate is shown, and there is no token.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub fn without_credentials(
        config: &Kubeconfig,
        context: Option<&str>,
    ) -> Result<Self, TargetError> {
        let target = Self::of_selection(&config.select(context)?, None)?;
        Ok(Self {
            token: None,
            ..target
        })
    }

    fn of_selection(
        selection: &Selection<'_>,
        identity: Option<&ClientIdentity>,
    ) -> Result<Self, TargetError> {
        if let Some(what) = unread(selection) {
            return Err(TargetError::Unsupported(what.to_owned()));
        }
        let unsupported = TargetError::Unsupported;
        let url = &selection.cluster.server;
        let uri: Uri = url
            .parse()
            .map_err(|error| unsupported(format!("the server {url:?} is no URL: {error}")))?;
        let port = match uri.scheme_str() {
            Some("https") => 443,
            Some("http") => 80,
            _ => {
                return Err(unsupported(format!(
                    "the server {url:?} has another scheme"
                )));
            }
        };
        let authority = uri.authority().filter(|it| !it.as_str().contains('@'));
        let authority = authority.filter(|_| uri.path().len() <= 1).ok_or_else(|| {
            unsupported(format!("the server {url:?} is more than a host and a port"))
        })?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let tls = match uri.scheme_str() {
            Some("https") => Some(tls(selection, &host, identity)?),
            _ => None,
        };
        Ok(Self {
            authority: authority.to_string(),
            port: authority.port_u16().unwrap_or(port),
            host,
            tls,
            token: selection.token()?,
        })
    }
}

/// Returns what of the selected context this client does not support.
fn unread(selection: &Selection<'_>) -> Option<&'static str> {
    let sign_in = selection.user.and_then(|user| user.unread_sign_in());
    match sign_in {
        _ if selection.cluster.proxy_url.is_some() => Some("there is a proxy-url"),
        Some(UnreadSignIn::Exec) => Some("the user signs in with an exec plugin"),
        Some(UnreadSignIn::AuthProvider) => Some("the user signs in with an auth-provider"),
        Some(UnreadSignIn::Password) => Some("the user signs in with a password"),
        None => None,
    }
}

/// Returns the certificate and key of the user; `None` if it has none.
fn identity(selection: &Selection<'_>) -> Result<Option<ClientIdentity>, TargetError> {
    let certificate = selection.client_certificate()?;
    let pair = certificate.zip(selection.client_key()?);
    let read = pair.map(|(certificate, key)| {
        ClientIdentity::read(&String::from_utf8_lossy(&certificate), &key)
    });
    read.transpose().map_err(TargetError::Unsupported)
}

/// Returns the client's side of TLS, which shows an identity, and the name that the server's certificate must have.
fn tls(
    selection: &Selection<'_>,
    host: &str,
    identity: Option<&ClientIdentity>,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), TargetError> {
    let unsupported = TargetError::Unsupported;
    let authority = selection.certificate_authority()?;
    let trust = match authority {
        _ if selection.cluster.insecure_skip_tls_verify => Trust::Anyone,
        Some(pem) => Trust::bundle(&pem).map_err(unsupported)?,
        None => Trust::system(),
    };
    let config = tls_client::config(trust, identity);
    let config = config.map_err(|error| unsupported(error.to_string()))?;
    let name = selection.cluster.tls_server_name.clone();
    let name = ServerName::try_from(name.unwrap_or_else(|| host.to_owned()));
    let name = name.map_err(|error| unsupported(error.to_string()))?;
    Ok((config, name))
}
