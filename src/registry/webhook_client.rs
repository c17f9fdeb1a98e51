//! Whom webhooks are: where they are reached and whom they must prove to be. Asking them is the server's.

use std::fmt::{self, Debug};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

/// The port of a service that does not say which.
const PORT_DEFAULT: u16 = 443;

/// Asks webhooks.
#[async_trait]
pub trait WebhookClient: Send + Sync + Debug {
    /// Posts a review and gives the answer's body, in the time given and of a bounded size.
    ///
    /// # Errors
    /// There is no answer, or none that may be used.
    async fn post(
        &self,
        to: &ClientConfig,
        review: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError>;
}

/// Why a webhook has not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct CallError {
    /// What clients are told.
    pub why: String,
    /// Whether it may be over soon.
    pub is_passing: bool,
}

/// Whom a webhook takes this server for: a certificate and its key, both in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClientPair {
    /// The certificate, and those above it.
    pub certificate: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
}

/// Without the key.
impl Debug for ClientPair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientPair").finish_non_exhaustive()
    }
}

/// `clientConfig` of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// Where it is.
    pub target: Target,
    /// Authorities in PEM that vouch for it; `None` for those of the system.
    pub ca_bundle: Option<Vec<u8>>,
    /// What it is shown to know who asks.
    pub token: Option<String>,
    /// The same by TLS.
    pub pair: Option<ClientPair>,
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// At this address.
    Url(String),
    /// At a port of a service of the cluster.
    Service {
        /// The service's namespace.
        namespace: String,
        /// The service's name.
        name: String,
        /// The port of the service.
        port: u16,
        /// The path, with a slash in front.
        path: String,
    },
}

impl ClientConfig {
    /// Reads `clientConfig`.
    ///
    /// # Errors
    /// It says neither url nor service, or the bundle is not base64.
    pub fn read(written: &Value) -> Result<Self, String> {
        let text = |value: &Value, name: &str| {
            let text = value.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let service = written.get("service").filter(|it| it.is_object());
        let url = text(written, "url");
        let target = match service {
            None if url.is_empty() => return Err("neither url nor service is given".to_owned()),
            None => Target::Url(url),
            Some(service) => {
                let port = service.get("port").and_then(Value::as_u64);
                let path = text(service, "path");
                Target::Service {
                    namespace: text(service, "namespace"),
                    name: text(service, "name"),
                    port: port
                        .and_then(|port| u16::try_from(port).ok())
                        .unwrap_or(PORT_DEFAULT),
                    path: format!("/{}", path.trim_start_matches('/')),
                }
            }
        };
        let bundle = text(written, "caBundle");
        let bundle = STANDARD
            .decode(bundle)
            .map_err(|error| format!("caBundle: {error}"))?;
        Ok(Self {
            target,
            ca_bundle: (!bundle.is_empty()).then_some(bundle),
            token: None,
            pair: None,
        })
    }
}

/// The address as messages show it.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => formatter.write_str(url),
            Self::Service {
                namespace,
                name,
                port,
                path,
            } => write!(formatter, "https://{name}.{namespace}.svc:{port}{path}"),
        }
    }
}
