//! Just enough of a kubelet: TLS, logs that come in pieces, and an upgrade that echoes. Without TLS it
//! stands in for what runs in a pod.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::container;
use crate::support::tls_server;

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The kind of stand-in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A kubelet whose streams say what they hear.
    Echoing,
    /// The same without TLS.
    Plain,
    /// A kubelet in whose containers something runs.
    Running { web_sockets: bool },
}

/// A kubelet on loopback, or a pod at another address of this machine, until it is dropped.
pub(super) struct StandIn {
    /// The address on which the stand-in listens.
    pub(super) address: SocketAddr,
    /// Its certificate, in PEM.
    pub(super) certificate: String,
    /// The events: the head of each request, and `closed` when a connection has ended.
    pub(super) events: mpsc::UnboundedReceiver<String>,
    /// Lets logs that are followed go on, a line for each permit.
    pub(super) lines: Arc<Semaphore>,
    _tasks: JoinSet<()>,
}

impl StandIn {
    pub(super) async fn start() -> Self {
        Self::made(Ipv4Addr::LOCALHOST.into(), Kind::Echoing, None).await
    }

    /// One that speaks TLS or not.
    pub(super) async fn at(address: IpAddr, encrypted: bool) -> Self {
        let kind = if encrypted {
            Kind::Echoing
        } else {
            Kind::Plain
        };
        Self::made(address, kind, None).await
    }

    /// One in whose containers something runs, which is reached over WebSockets or else over SPDY alone.
    pub(super) async fn that_runs(web_sockets: bool) -> Self {
        let kind = Kind::Running { web_sockets };
        Self::made(Ipv4Addr::LOCALHOST.into(), kind, None).await
    }

    /// One that answers those alone who have this certificate.
    pub(super) async fn that_knows(client: &CertificateDer<'_>) -> Self {
        let mut known = RootCertStore::empty();
        known
            .add(client.clone().into_owned())
            .expect("a certificate");
        Self::made(Ipv4Addr::LOCALHOST.into(), Kind::Echoing, Some(known)).await
    }

    async fn made(address: IpAddr, kind: Kind, known: Option<RootCertStore>) -> Self {
        let names = vec![address.to_string()];
        let (certificate, pem, key) = tls_server::self_signed(names);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients = known.map(|known| {
            WebPkiClientVerifier::builder_with_provider(Arc::new(known), Arc::clone(&provider))
                .build()
                .expect("clients")
        });
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth))
            .with_single_cert(vec![certificate], key)
            .expect("a key of the certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind((address, 0)).await;
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (told, events) = mpsc::unbounded_channel();
        let lines = Arc::new(Semaphore::new(0));
        let mut tasks = JoinSet::new();
        let permits = Arc::clone(&lines);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((tcp, _)) = listener.accept().await {
                let (acceptor, told) = (acceptor.clone(), told.clone());
                let permits = Arc::clone(&permits);
                connections.spawn(async move {
                    if kind == Kind::Plain {
                        let _ = serve(tcp, kind, &told, &permits).await;
                    } else if let Ok(stream) = acceptor.accept(tcp).await {
                        let _ = serve(stream, kind, &told, &permits).await;
                    }
                    let _ = told.send("closed".to_owned());
                });
            }
        });
        Self {
            address,
            certificate: pem,
            events,
            lines,
            _tasks: tasks,
        }
    }

    /// The head of the next request.
    pub(super) async fn next(&mut self) -> String {
        let event = tokio::time::timeout(super::DEADLINE, self.events.recv()).await;
        event.expect("an event in time").expect("an event")
    }
}

/// Lets the client speak with what runs in a container, if it speaks what this kubelet does.
async fn run(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    head: &str,
    target: &str,
    web_sockets: bool,
) -> std::io::Result<()> {
    match (container::wants_web_socket(head), web_sockets) {
        (true, true) => container::over_web_socket(stream, head, target).await,
        (true, false) => {
            let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 8\r\n\r\nnot that";
            stream.write_all(refusal.as_bytes()).await
        }
        (false, _) if target.starts_with("/portForward/") => container::over_ports(stream).await,
        (false, _) => container::over_spdy(stream, target).await,
    }
}

/// Answers one request by what its path ends with.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    kind: Kind,
    told: &mpsc::UnboundedSender<String>,
    lines: &Semaphore,
) -> std::io::Result<()> {
    let head = super::head(&mut stream).await?;
    let _ = told.send(head.clone());
    let target = head.split(' ').nth(1).unwrap_or_default();
    if let Kind::Running { web_sockets } = kind
        && !target.starts_with("/containerLogs/")
    {
        return run(stream, &head, target, web_sockets).await;
    }
    if target.starts_with("/exec/") || target.starts_with("/portForward/") {
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nearly";
        stream.write_all(answer.as_bytes()).await?;
        let (mut reader, mut writer) = tokio::io::split(stream);
        tokio::io::copy(&mut reader, &mut writer).await?;
        return Ok(());
    }
    if target.starts_with("/attach/") {
        let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\nnot now";
        return stream.write_all(refusal.as_bytes()).await;
    }
    if target.starts_with("/away") {
        let answer = "HTTP/1.1 302 Found\r\nLocation: /there?a=b\r\nX-Mine: kept\r\n\
            Access-Control-Allow-Origin: *\r\nContent-Length: 0\r\n\r\n";
        return stream.write_all(answer.as_bytes()).await;
    }
    if target.starts_with("/page") {
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
            Content-Length: 17\r\n\r\n<a href='/there'>";
        return stream.write_all(answer.as_bytes()).await;
    }
    if target.starts_with("/echo") {
        let length = head.to_lowercase();
        let length = length.split("content-length: ").nth(1);
        let length = length.and_then(|it| it.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        let answer = format!(
            "HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        return stream.write_all(&body).await;
    }
    if target.contains("/gone") {
        let refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 11\r\n\r\nno such log";
        return stream.write_all(refusal.as_bytes()).await;
    }
    if target.contains("/broken") {
        let part = format!("{CHUNKED}5\r\npart\n\r\n");
        return stream.write_all(part.as_bytes()).await;
    }
    if !target.contains("follow=true") {
        let whole = format!("{CHUNKED}5\r\none\n\n\r\n4\r\ntwo\n\r\n0\r\n\r\n");
        stream.write_all(whole.as_bytes()).await?;
        return stream.shutdown().await;
    }
    stream.write_all(CHUNKED.as_bytes()).await?;
    let mut nothing = [0];
    loop {
        tokio::select! {
            permit = lines.acquire() => permit.expect("open").forget(),
            _ = stream.read(&mut nothing) => return Ok(()),
        }
        stream.write_all(b"5\r\nline\n\r\n").await?;
        stream.flush().await?;
    }
}
