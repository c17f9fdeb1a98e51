//! The connection settings of an etcd cluster.

use std::path::{Path, PathBuf};
use std::time::Duration;

use etcd_client::{Certificate, Identity, TlsOptions};
use tonic::transport;

use super::endpoint::{AddMetadata, Endpoint};
use crate::storage::backend::BackendError;

/// The time limit of establishing a connection; that of kube-apiserver.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time limit of a call, attempts on other endpoints included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval of pings on a connection that has calls in progress.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// The time limit of the reply to a ping, after which the connection is closed.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a response that may be in flight. Watches that are not read stop here.
const STREAM_WINDOW_BYTES: u32 = 1 << 18;
/// Maximum number of bytes of all responses of a connection that may be in flight: the protocol's limit, so that it
/// takes thousands of unread watches to stop the others.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// The connection settings of an etcd cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The URLs of its members; without a scheme, `http`.
    pub endpoints: Vec<String>,
    /// The TLS files of `https` endpoints.
    pub tls: TlsFiles,
    /// The time limit of establishing a connection.
    pub connect_timeout: Duration,
    /// The time limit of a call, attempts on other endpoints included.
    pub request_timeout: Duration,
    /// Adds metadata to every request, and to each attempt anew; `None` adds none.
    pub add_metadata: Option<AddMetadata>,
}

/// PEM files for TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// The certificate authorities of the members' certificates.
    pub ca: Option<PathBuf>,
    /// The client certificate.
    pub cert: Option<PathBuf>,
    /// The file of the client certificate's key.
    pub key: Option<PathBuf>,
}

impl Config {
    /// Creates the settings of these endpoints, with the default time limits.
    #[must_use]
    pub fn new(endpoints: Vec<String>, tls: TlsFiles) -> Self {
        Self {
            endpoints,
            tls,
            connect_timeout: CONNECT_TIMEOUT,
            request_timeout: REQUEST_TIMEOUT,
            add_metadata: None,
        }
    }

    /// Prepares all endpoints; nothing is sent yet.
    ///
    /// # Errors
    /// One line that names the setting or the file, and the error.
    pub(super) async fn open(&self) -> Result<Vec<Endpoint>, BackendError> {
        if self.endpoints.is_empty() {
            return Err(wrong("no etcd endpoint is given"));
        }
        let tls = self.tls.load().await?;
        let mut endpoints = Vec::with_capacity(self.endpoints.len());
        for url in &self.endpoints {
            let url = match url.split_once("://") {
                Some(_) => url.trim_end_matches('/').to_owned(),
                None => format!("http://{}", url.trim_end_matches('/')),
            };
            let transport = self.transport(&url, &tls)?;
            endpoints.push(Endpoint::new(url, &transport, self.add_metadata).await?);
        }
        Ok(endpoints)
    }

    fn transport(&self, url: &str, tls: &TlsOptions) -> Result<transport::Endpoint, BackendError> {
        let unusable = |why: &dyn std::fmt::Display| wrong(format!("etcd endpoint {url}: {why}"));
        let transport = transport::Endpoint::from_shared(url.to_owned())
            .map_err(|error| unusable(&error))?
            .connect_timeout(self.connect_timeout)
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(KEEPALIVE_TIMEOUT)
            // etcd treats pings on an idle connection as an attack, and closes it.
            .keep_alive_while_idle(false)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        match transport.uri().scheme_str() {
            Some("http") => Ok(transport),
            Some("https") if self.tls.ca.is_none() => Err(unusable(&"https needs a CA file")),
            Some("https") => transport
                .tls_config(tls.clone())
                .map_err(|error| unusable(&error)),
            _ => Err(unusable(&"the scheme must be http or https")),
        }
    }
}

impl TlsFiles {
    async fn load(&self) -> Result<TlsOptions, BackendError> {
        let mut options = TlsOptions::new();
        if let Some(ca) = &self.ca {
            options = options.ca_certificate(Certificate::from_pem(read(ca).await?));
        }
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let identity = Identity::from_pem(read(cert).await?, read(key).await?);
                Ok(options.identity(identity))
            }
            (None, None) => Ok(options),
            _ => Err(wrong(
                "an etcd client certificate needs its key, and a key its certificate",
            )),
        }
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, BackendError> {
    tokio::fs::read(path)
        .await
        .map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))
}

fn wrong(message: impl Into<String>) -> BackendError {
    BackendError::Other(message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(endpoints: &[&str], tls: TlsFiles) -> String {
        let endpoints = endpoints.iter().map(|url| (*url).to_owned()).collect();
        let opened = Config::new(endpoints, tls).open().await;
        opened.err().expect("a wrong configuration").to_string()
    }

    #[tokio::test]
    async fn says_what_is_wrong_in_one_line() {
        let none = TlsFiles::default();
        assert_eq!(
            refusal(&[], none.clone()).await,
            "no etcd endpoint is given"
        );
        assert_eq!(
            refusal(&["ftp://a:1"], none.clone()).await,
            "etcd endpoint ftp://a:1: the scheme must be http or https"
        );
        assert_eq!(
            refusal(&["https://a:1"], none.clone()).await,
            "etcd endpoint https://a:1: https needs a CA file"
        );
        let missing = TlsFiles {
            ca: Some("/nowhere/ca.pem".into()),
            ..none.clone()
        };
        let error = refusal(&["https://a:1"], missing).await;
        assert!(
            error.starts_with("cannot read /nowhere/ca.pem: "),
            "{error}"
        );
        let half = TlsFiles {
            key: Some("/nowhere/key.pem".into()),
            ..none
        };
        let error = refusal(&["a:1"], half).await;
        assert!(error.contains("needs its key"), "{error}");
    }

    #[tokio::test]
    async fn endpoints_without_a_scheme_are_plain() {
        let config = Config::new(vec!["127.0.0.1:2379/".to_owned()], TlsFiles::default());
        let opened = config.open().await.expect("an endpoint");
        assert_eq!(opened[0].name(), "http://127.0.0.1:2379");
    }
}
