//! A webhook of the test's own: TLS on loopback, answers by path.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

use super::tls_server;

/// The way in which a webhook answers.
pub(crate) enum Reply {
    /// With a document.
    Json(Value),
    /// With a status and a body.
    Text(u16, String),
    /// It never answers.
    Hang,
    /// With so many bytes, without saying before how many.
    Flood(usize),
}

/// Answers a review that came to a path.
pub(crate) type Answer = fn(&str, &Value) -> Reply;

/// The requests to a webhook: paths, without their queries, and reviews.
pub(crate) type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// The heads of requests to a webhook.
pub(crate) type Heads = Arc<Mutex<Vec<String>>>;

/// A webhook, until it is dropped.
pub(crate) struct Webhook {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Asked,
    /// The heads of all requests, in lower case.
    pub(crate) heads: Heads,
    /// Its certificate, in PEM.
    certificate: String,
    _tasks: JoinSet<()>,
}

impl Webhook {
    /// Starts a webhook whose certificate is for loopback and the service `hook` in `default`.
    pub(crate) async fn start(answer: Answer) -> Self {
        let names = vec![
            Ipv4Addr::LOCALHOST.to_string(),
            "hook.default.svc".to_owned(),
        ];
        let (certificate, pem, key) = tls_server::self_signed(names);
        let asked = Asked::default();
        let heads = Heads::default();
        let told = (Arc::clone(&asked), Arc::clone(&heads));
        let serve = move |stream| serve(stream, answer, told.clone());
        let (address, tasks) = tls_server::listen(certificate, key, serve).await;
        Self {
            address,
            asked,
            heads,
            certificate: pem,
            _tasks: tasks,
        }
    }

    /// Its certificate as configurations carry it.
    pub(crate) fn ca_bundle(&self) -> String {
        STANDARD.encode(&self.certificate)
    }

    /// `clientConfig` for a path.
    pub(crate) fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.ca_bundle()})
    }

    /// The reviews that came to a path since the last look.
    pub(crate) fn take(&self, path: &str) -> Vec<Value> {
        let mut asked = self.asked.lock().expect("sound");
        let (found, left) = std::mem::take(&mut *asked)
            .into_iter()
            .partition(|(asked, _)| asked == path);
        *asked = left;
        found.into_iter().map(|(_, review)| review).collect()
    }
}

async fn serve(
    mut stream: TlsStream<TcpStream>,
    answer: Answer,
    (asked, heads): (Asked, Heads),
) -> std::io::Result<()> {
    let head = tls_server::head(&mut stream).await?.to_lowercase();
    heads.lock().expect("sound").push(head.clone());
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let target = head.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let review: Value = serde_json::from_slice(&body)?;
    let reply = answer(path, &review);
    asked.lock().expect("sound").push((path.to_owned(), review));
    let (status, form, text) = match reply {
        Reply::Json(value) => (200, "application/json", value.to_string()),
        Reply::Text(status, text) => (status, "text/plain", text),
        Reply::Hang => std::future::pending().await,
        Reply::Flood(bytes) => return flood(stream, bytes).await,
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\nContent-Type: {form}\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

async fn flood(mut stream: TlsStream<TcpStream>, bytes: usize) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n\"";
    stream.write_all(head.as_bytes()).await?;
    let chunk = vec![b'x'; 1 << 16];
    for _ in 0..bytes / chunk.len() {
        stream.write_all(&chunk).await?;
    }
    stream.shutdown().await
}
