//! Fetches a document over HTTPS, in bounded time and of bounded size.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long it may take, from the look-up of the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a document may be.
const BYTES_MAX: usize = 1 << 20;
/// How long the head of an answer may be.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The port of HTTPS.
const PORT: u16 = 443;

/// Why a document could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// It has no place that HTTPS leads to.
    #[error("not of the form https://HOST[:PORT]/PATH")]
    Address,
    /// Nobody is there, or not who should be.
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    /// What came is not HTTP.
    #[error("{0}")]
    Http(#[from] hyper::Error),
    /// It is not there.
    #[error("the answer is {0}")]
    Status(StatusCode),
    /// It is longer than anything that is meant.
    #[error("longer than {BYTES_MAX} bytes, or broken off")]
    Body,
    /// It takes too long.
    #[error("no answer in {} s", TIMEOUT.as_secs())]
    TimedOut,
}

/// The document at an address.
///
/// # Errors
/// [`GetError`]
pub async fn get(url: &str, tls: &Arc<rustls::ClientConfig>) -> Result<Bytes, GetError> {
    let fetched = tokio::time::timeout(TIMEOUT, fetch(url, tls)).await;
    fetched.map_err(|_| GetError::TimedOut)?
}

async fn fetch(url: &str, tls: &Arc<rustls::ClientConfig>) -> Result<Bytes, GetError> {
    let uri: Uri = url.parse().map_err(|_| GetError::Address)?;
    let authority = uri.authority().ok_or(GetError::Address)?;
    if uri.scheme_str() != Some("https") {
        return Err(GetError::Address);
    }
    let host = authority.host().trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(|_| GetError::Address)?;
    let port = authority.port_u16().unwrap_or(PORT);
    let tcp = TcpStream::connect((host, port)).await?;
    let stream = TlsConnector::from(Arc::clone(tls))
        .connect(name, tcp)
        .await?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request = Request::get(path)
        .header(HOST, authority.as_str())
        .header(ACCEPT, "application/json")
        .body(Empty::<Bytes>::new())
        .map_err(|_| GetError::Address)?;
    let mut builder = http1::Builder::new();
    let handshake = builder
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    let exchange = async {
        let answer = sender.send_request(request).await?;
        if answer.status() != StatusCode::OK {
            return Err(GetError::Status(answer.status()));
        }
        let body = Limited::new(answer.into_body(), BYTES_MAX).collect().await;
        body.map(|body| body.to_bytes()).map_err(|_| GetError::Body)
    };
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        // What went wrong, if anything did, the answer tells.
        _ = connection => exchange.await,
    }
}
