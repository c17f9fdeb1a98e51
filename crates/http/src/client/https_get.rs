//! Fetches a document over HTTPS, in bounded time and of bounded size.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST};
use http::{Request, StatusCode, Uri};
use ringwatch::clock::Clock;

use super::{Backend, ExchangeError, fetch};
use crate::body::full;

/// Maximum time of the whole request, from name resolution to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a document.
const BYTES_MAX: usize = 1 << 20;
/// The port of HTTPS.
const PORT: u16 = 443;

/// The failure to get a document.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// The URL is not HTTPS, or has no host.
    #[error("not of the form https://HOST[:PORT]/PATH")]
    Address,
    /// The server cannot be reached, has the wrong certificate, or sends no usable response.
    #[error("{0}")]
    Exchange(#[from] ExchangeError),
    /// The status of the response is not 200.
    #[error("the answer is {0}")]
    Status(StatusCode),
    /// There is no response in time.
    #[error("no answer in {} s", TIMEOUT.as_secs())]
    TimedOut,
}

/// Returns the backend of an HTTPS URL; `None` if the URL has none.
#[must_use]
pub fn backend(
    uri: &Uri,
    tls: &Arc<rustls::ClientConfig>,
    timeout: Duration,
    clock: &Clock,
) -> Option<Backend> {
    let authority = uri.authority()?;
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    (uri.scheme_str() == Some("https")).then(|| Backend {
        port: authority.port_u16().unwrap_or(PORT),
        tls: Some(Arc::clone(tls)),
        name: host.clone(),
        host,
        may_be_local: true,
        connect_timeout: timeout,
        bytes_per_second: None,
        kept: None,
        clock: clock.clone(),
    })
}

/// Gets the document at an HTTPS URL, of at most `BYTES_MAX` bytes and within `TIMEOUT`.
///
/// # Errors
/// [`GetError`] if the URL is not HTTPS, the server cannot be reached in time, or its answer is refused or too large.
pub async fn get(
    url: &str,
    tls: &Arc<rustls::ClientConfig>,
    clock: &Clock,
) -> Result<Bytes, GetError> {
    let uri: Uri = url.parse().map_err(|_| GetError::Address)?;
    let backend = backend(&uri, tls, TIMEOUT, clock).ok_or(GetError::Address)?;
    let authority = uri.authority().map_or("", |it| it.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(HOST, authority)
        .header(ACCEPT, "application/json")
        .body(full(""))
        .map_err(|_| GetError::Address)?;
    let fetched = clock
        .timeout(TIMEOUT, fetch(&backend, request, BYTES_MAX))
        .await;
    let answer = fetched.map_err(|_| GetError::TimedOut)??;
    match answer.status() {
        StatusCode::OK => Ok(answer.into_body()),
        status => Err(GetError::Status(status)),
    }
}
