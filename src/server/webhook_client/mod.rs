//! Asks webhooks: over TLS, in bounded time, for answers of bounded size.
//!
//! Each call has a connection of its own, which the caller's task drives; so it goes when nobody waits for
//! the answer any more.

mod services;
mod trust;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use self::services::Services;
use self::trust::Trust;
use crate::registry::webhook_client::{CallError, ClientConfig, Target, WebhookClient};

/// Bytes of an answer's body.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Bytes of an answer's head, and of what is read of its body at once.
const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes of an error's body that are told.
const TOLD_BYTES_MAX: usize = 2 << 10;

/// The port of HTTPS.
const HTTPS: u16 = 443;

/// Asks webhooks over the network.
#[derive(Debug)]
pub struct NetworkClient {
    /// Where services are.
    pub services: Services,
    /// Whom to trust.
    trust: Trust,
}

/// Where a call goes.
#[derive(Debug)]
struct Place {
    /// What is connected to: a name or an address.
    host: String,
    port: u16,
    /// What the certificate must be for.
    name: String,
    /// What the request says: `host:port` and a path.
    authority: String,
    path: String,
}

impl NetworkClient {
    /// A client that finds services there.
    #[must_use]
    pub fn new(services: Services) -> Self {
        Self {
            services,
            trust: Trust::default(),
        }
    }

    async fn place(&self, target: &Target, timeout: Duration) -> Result<Place, String> {
        let query = format!("timeout={}s", timeout.as_secs());
        match target {
            Target::Url(url) => {
                let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
                let authority = uri.authority().ok_or("the url has no host")?;
                if uri.scheme_str() != Some("https") {
                    return Err("the url's scheme is not https".to_owned());
                }
                let host = authority.host().trim_matches(['[', ']']).to_owned();
                Ok(Place {
                    port: authority.port_u16().unwrap_or(HTTPS),
                    name: host.clone(),
                    host,
                    authority: authority.to_string(),
                    path: format!("{}?{query}", uri.path()),
                })
            }
            Target::Service {
                namespace,
                name,
                port,
                path,
            } => {
                let (host, found) = self.services.address(namespace, name, *port).await?;
                Ok(Place {
                    host,
                    port: found,
                    name: format!("{name}.{namespace}.svc"),
                    authority: format!("{name}.{namespace}.svc:{port}"),
                    path: format!("{path}?{query}"),
                })
            }
        }
    }

    async fn exchange(
        &self,
        place: &Place,
        bundle: Option<&[u8]>,
        review: Bytes,
    ) -> Result<Bytes, String> {
        let name = ServerName::try_from(place.name.clone())
            .map_err(|_| format!("{:?} is neither a name nor an address", place.name))?;
        let connector = TlsConnector::from(self.trust.config(bundle)?);
        let tcp = TcpStream::connect((place.host.as_str(), place.port)).await;
        let tcp =
            tcp.map_err(|error| format!("dial tcp {}:{}: {error}", place.host, place.port))?;
        let tls = connector.connect(name, tcp).await;
        let tls = tls.map_err(|error| trust::words(&error, &place.name))?;
        let handshake = http1::Builder::new()
            .max_buf_size(READ_BYTES_MAX)
            .handshake::<_, Full<Bytes>>(TokioIo::new(tls));
        let (mut sender, connection) = handshake.await.map_err(|error| error.to_string())?;
        let request = Request::post(&place.path)
            .header(HOST, &place.authority)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(review))
            .map_err(|error| error.to_string())?;
        let answer = async {
            let answer = sender.send_request(request).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let status = answer.status();
            Ok::<_, String>((status, read(answer.into_body()).await?))
        };
        let mut answer = std::pin::pin!(answer);
        let (status, content) = tokio::select! {
            biased;
            answer = &mut answer => answer,
            // What went wrong, if anything did, the answer tells.
            _ = connection => answer.await,
        }?;
        if status.is_success() {
            return Ok(content);
        }
        Err(refusal(status, &content))
    }
}

#[async_trait]
impl WebhookClient for NetworkClient {
    async fn post(
        &self,
        to: &ClientConfig,
        review: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let late = |_| Err("context deadline exceeded".to_owned());
        let mut url = to.target.to_string();
        if !url.contains('?') {
            url = format!("{url}?timeout={}s", timeout.as_secs());
        }
        let call = async {
            let place = self.place(&to.target, timeout).await?;
            let exchanged = self.exchange(&place, to.ca_bundle.as_deref(), review);
            exchanged
                .await
                .map_err(|why| format!("Post {url:?}: {why}"))
        };
        let answered = tokio::time::timeout(timeout, call).await;
        answered
            .unwrap_or_else(|elapsed| late(elapsed).map_err(|why| format!("Post {url:?}: {why}")))
            .map_err(CallError)
    }
}

/// The whole body, if it is not too long.
async fn read(mut body: Incoming) -> Result<Bytes, String> {
    let too_long = || format!("the answer is longer than {ANSWER_BYTES_MAX} bytes");
    if body.size_hint().lower() > ANSWER_BYTES_MAX as u64 {
        return Err(too_long());
    }
    let mut content = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        if let Some(data) = frame.data_ref() {
            if content.len() + data.len() > ANSWER_BYTES_MAX {
                return Err(too_long());
            }
            content.extend_from_slice(data);
        }
    }
    Ok(content.freeze())
}

/// An answer that is none, in the words of Kubernetes' clients.
fn refusal(status: StatusCode, content: &[u8]) -> String {
    let told = &content[..content.len().min(TOLD_BYTES_MAX)];
    let told = String::from_utf8_lossy(told);
    match status.as_u16() {
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        429 => format!(
            "the server has received too many requests and has asked us to try again later: {told}"
        ),
        500..600 => {
            format!("an error on the server ({told:?}) has prevented the request from succeeding")
        }
        code => format!("the server rejected our request for an unknown reason (status {code})"),
    }
}

/// A client of this server.
#[must_use]
pub fn client(services: Services) -> Arc<dyn WebhookClient> {
    Arc::new(NetworkClient::new(services))
}
