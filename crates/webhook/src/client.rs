//! The contract of webhook clients, and their configuration: the address, authorities and credentials of a webhook.

use std::fmt::{self, Debug};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

/// Port of a `clientConfig.service` that names none.
const PORT_DEFAULT: u16 = 443;

/// A client that calls webhooks.
#[async_trait]
pub trait WebhookClient: Send + Sync + Debug {
    /// Posts a review and returns the body of the answer, whose size is bounded, within `timeout`.
    ///
    /// # Errors
    /// A [`CallError`] if there is no answer in time, or none with a status of success.
    async fn post(
        &self,
        to: &ClientConfig,
        review: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError>;
}

/// The failure of a call to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct CallError {
    /// The message for the client whose request needed the call.
    pub why: String,
    /// True if a retry may succeed, as after a reset connection or an overloaded server.
    pub is_passing: bool,
    /// The HTTP status of the webhook's answer; `None` if there was no answer.
    pub status: Option<u16>,
}

/// The certificate with which this server authenticates to a webhook, and its private key, both in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClientPair {
    /// The certificate, followed by intermediate ones.
    pub certificate: Vec<u8>,
    /// The private key, in PEM.
    pub key: Vec<u8>,
}

/// Shows neither certificate nor key.
impl Debug for ClientPair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ClientPair").finish_non_exhaustive()
    }
}

/// The `clientConfig` of a webhook, with the credentials that this server presents to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    /// The name that says to people which webhook it is, such as that in its configuration.
    pub name: String,
    /// The address of the webhook.
    pub target: WebhookTarget,
    /// Certificate authorities in PEM that verify the webhook's certificate; `None` for those of the system.
    pub ca_bundle: Option<Vec<u8>>,
    /// The bearer token that this server sends, if it has one for the webhook.
    pub token: Option<String>,
    /// The client certificate that this server presents, if it has one for the webhook.
    pub pair: Option<ClientPair>,
}

/// The address of a webhook: a URL or a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WebhookTarget {
    /// An absolute URL, as `clientConfig.url` names it.
    Url(String),
    /// The absolute URL of a server in a kubeconfig.
    Server(String),
    /// A path at a port of a service of the cluster.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
        /// The port of the service.
        port: u16,
        /// The path.
        path: String,
    },
}

impl ClientConfig {
    /// Reads the `clientConfig` of a webhook of this name, without credentials, which other configuration gives.
    ///
    /// # Errors
    /// A message if it names neither url nor service, or if `caBundle` is not base64.
    pub fn read(name: &str, client_config: &Value) -> Result<Self, String> {
        let text = |value: &Value, name: &str| {
            let text = value.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let service = client_config.get("service").filter(|it| it.is_object());
        let url = text(client_config, "url");
        let target = match service {
            None if url.is_empty() => return Err("neither url nor service is given".to_owned()),
            None => WebhookTarget::Url(url),
            Some(service) => {
                let port = service.get("port").and_then(Value::as_u64);
                let path = text(service, "path");
                WebhookTarget::Service {
                    namespace: text(service, "namespace"),
                    name: text(service, "name"),
                    port: port
                        .and_then(|port| u16::try_from(port).ok())
                        .unwrap_or(PORT_DEFAULT),
                    path,
                }
            }
        };
        let bundle = text(client_config, "caBundle");
        let bundle = STANDARD
            .decode(bundle)
            .map_err(|error| format!("caBundle: {error}"))?;
        Ok(Self {
            name: name.to_owned(),
            target,
            ca_bundle: (!bundle.is_empty()).then_some(bundle),
            token: None,
            pair: None,
        })
    }
}

/// Writes the URL as it is configured; for a service it is `https://NAME.NAMESPACE.svc:PORT/PATH`.
impl fmt::Display for WebhookTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) | Self::Server(url) => formatter.write_str(url),
            Self::Service {
                namespace,
                name,
                port,
                path,
            } => {
                let path = path.trim_start_matches('/');
                write!(formatter, "https://{name}.{namespace}.svc:{port}/{path}")
            }
        }
    }
}
