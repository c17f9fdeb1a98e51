//! A server of an API that answers as the test says, over TLS on loopback.

use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

use super::{Pair, head};
use crate::support::tls_server;

/// The way in which the stand-in answers a request.
pub(super) enum Reply {
    /// With a head and a body as they are; then the connection ends.
    Raw(String),
    /// With a JSON document.
    Json(String),
    /// With so many bytes.
    Flood(usize),
    /// With the begin of a body that has no end.
    Endless,
    /// It never answers.
    Hang,
    /// By speaking something else, in which it says everything again.
    Echo,
}

/// Answers a request for a path.
pub(super) type Respond = fn(&str) -> Reply;

pub(super) struct StandIn {
    pub(super) port: u16,
    /// The certificate, in PEM.
    pub(super) pem: String,
    /// The heads of all requests.
    pub(super) heads: mpsc::UnboundedReceiver<String>,
    _tasks: JoinSet<()>,
}

impl StandIn {
    /// The server of a service.
    pub(super) async fn start(folder: &Path, service: &str, respond: Respond) -> Self {
        let pair = Pair::serving(folder, service);
        let certificate = CertificateDer::from_pem_file(&pair.certificate);
        let key = PrivateKeyDer::from_pem_file(&pair.key).expect("a key");
        let (tell, heads) = mpsc::unbounded_channel();
        let serve = move |stream| serve(stream, respond, tell.clone());
        let certificate = certificate.expect("a certificate");
        let (address, tasks) = tls_server::listen(certificate, key, serve).await;
        Self {
            port: address.port(),
            pem: pair.pem,
            heads,
            _tasks: tasks,
        }
    }
}

async fn serve(
    mut stream: TlsStream<TcpStream>,
    respond: Respond,
    tell: mpsc::UnboundedSender<String>,
) -> std::io::Result<()> {
    let head = head(&mut stream).await?;
    let target = head.split(' ').nth(1).unwrap_or_default();
    let reply = respond(target.split('?').next().unwrap_or_default());
    let _ = tell.send(head);
    match reply {
        Reply::Raw(text) => stream.write_all(text.as_bytes()).await?,
        Reply::Json(body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(body.as_bytes()).await?;
        }
        Reply::Flood(bytes) => {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json;as=APIGroupDiscoveryList\r\n\
                Connection: close\r\n\r\n";
            stream.write_all(head.as_bytes()).await?;
            let chunk = vec![b' '; 1 << 16];
            for _ in 0..bytes / chunk.len() {
                stream.write_all(&chunk).await?;
            }
        }
        Reply::Endless => {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
            stream.write_all(head.as_bytes()).await?;
            stream.flush().await?;
            std::future::pending().await
        }
        Reply::Hang => std::future::pending().await,
        Reply::Echo => {
            let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                Upgrade: echo\r\n\r\nready\n";
            stream.write_all(head.as_bytes()).await?;
            let (mut from, mut to) = tokio::io::split(stream);
            tokio::io::copy(&mut from, &mut to).await?;
            return to.shutdown().await;
        }
    }
    stream.shutdown().await
}
