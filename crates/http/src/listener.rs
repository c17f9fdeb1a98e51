//! Accepts connections, gives each a place, and waits for them at the end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_tls::error::StartError;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::Connections;
use super::tls::TlsConfigs;

/// The most connections that wait in the kernel to be accepted, unless the system allows fewer.
const BACKLOG: u32 = 4_096;
/// The pause after a failed accept (no file descriptors left).
const ACCEPT_PAUSE_MILLISECONDS: u64 = 100;

/// A listening TCP socket, whose connections become tasks.
#[derive(Debug)]
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on an address; port 0 picks a free one. With `shares_port` other processes may listen on it too.
    ///
    /// # Errors
    /// The address or the port cannot be had.
    pub async fn bind(address: SocketAddr, shares_port: bool) -> Result<Self, StartError> {
        let wrong = |error: std::io::Error| {
            let advice = match error.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "end what listens there, or choose another --secure-port (0 picks a free one)"
                }
                std::io::ErrorKind::AddrNotAvailable => "choose a --bind-address of this machine",
                _ => "choose another --secure-port or --bind-address",
            };
            StartError::new(format!("listen on {address}"), error, advice)
        };
        let tcp = listen(address, shares_port).map_err(wrong)?;
        let address = tcp.local_addr().map_err(wrong)?;
        Ok(Self { tcp, address })
    }

    /// Returns the address and port that the socket is bound to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts and serves until `stop`; then no longer accepts, and gives what is still open.
    pub async fn run(
        self,
        connections: Connections,
        tls: TlsConfigs,
        stop: CancellationToken,
    ) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.tcp.accept() => accepted,
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                    report(ended);
                    continue;
                }
                () = stop.cancelled() => return tasks,
            };
            match accepted {
                Ok((tcp, address)) => {
                    let entered = connections.unauthenticated.enter(address.ip());
                    let entered = tokio::select! {
                        entered = entered => entered,
                        () = stop.cancelled() => return tasks,
                    };
                    let Some(entered) = entered else {
                        continue;
                    };
                    let (connections, tls) = (connections.clone(), Arc::clone(&tls));
                    tasks.spawn(async move {
                        let standing = entered.standing();
                        let stream = Box::pin(connections.handshake(tcp, tls, standing)).await;
                        if let Some(stream) = stream {
                            connections.serve(stream, standing).await;
                        }
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    let pause = Duration::from_millis(ACCEPT_PAUSE_MILLISECONDS);
                    connections.clock.sleep(pause).await;
                }
            }
        }
    }
}

fn listen(address: SocketAddr, shares_port: bool) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that starts again need not wait for the connections of the one before.
    socket.set_reuseaddr(true)?;
    if shares_port {
        socket.set_reuseport(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Waits until all have ended, for at most this long; then ends them. Says how many it ended.
pub async fn finish(mut tasks: JoinSet<()>, at_most: Duration, clock: &Clock) -> usize {
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    };
    let _ = clock.timeout(at_most, all).await;
    let left = tasks.len();
    tasks.shutdown().await;
    left
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection panicked");
    }
}

#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use http::header::AUTHORIZATION;
    use http::{Request, Response, Version};
    use http_body_util::{BodyExt, Empty};
    use hyper::client::conn::{http1, http2};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use ringwatch::budget::Ledger;
    use ringwatch_tls::certificates::{Certificates, Identity};
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;

    use super::*;
    use crate::body::{RequestBody, ResponseBody, full};
    use crate::cancellation::CancellationFlag;
    use crate::testing::{self, Handler};

    /// Names the user, or never ends.
    struct Stub;

    #[async_trait]
    impl Handler for Stub {
        async fn handle(
            &self,
            request: Request<RequestBody>,
            user: &str,
        ) -> Response<ResponseBody> {
            if request.uri().path() == "/api/v1/pods" {
                let never = futures::stream::pending();
                let body = http_body_util::StreamBody::new(never);
                return Response::new(body.boxed_unsync());
            }
            Response::new(full(user.to_owned()))
        }
    }

    /// A client that says nothing is not borne with for longer.
    const SILENCE_SECONDS_MAX: u64 = 300;

    /// More connections than one address may have that is not authenticated.
    const SILENT: usize = 1_100;
    /// A new client tries this often, for so many seconds: less than a handshake may take in all, with a second before
    /// each.
    const ATTEMPTS_MAX: u32 = 3;
    const ATTEMPT_SECONDS_MAX: u64 = 2;

    struct Server {
        address: SocketAddr,
        certificates: Certificates,
        closing: CancellationFlag,
        end_of_watches: CancellationFlag,
        stop: CancellationToken,
        running: JoinHandle<JoinSet<()>>,
    }

    async fn serve() -> Server {
        let certificates = testing::certificates();
        let connections = testing::connections(Arc::new(Stub), &Ledger::unlimited(), &certificates);
        let end_of_watches = connections.end_of_watches.clone();
        let (closing, stop) = (connections.closing.clone(), CancellationToken::new());
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(local, false).await.expect("a port");
        let address = listener.address();
        let running = listener.run(connections, testing::tls(&certificates), stop.clone());
        Server {
            address,
            certificates,
            closing,
            end_of_watches,
            stop,
            running: tokio::runtime::Handle::current().spawn(running),
        }
    }

    impl Server {
        async fn try_connect(
            &self,
            protocol: &[u8],
            client: Option<&Identity>,
        ) -> std::io::Result<TlsStream<TcpStream>> {
            let pem = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).expect("PEM");
            let mut roots = RootCertStore::empty();
            roots
                .add(pem(&self.certificates.authority))
                .expect("an authority");
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let builder = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .expect("versions")
                .with_root_certificates(roots);
            let mut config = match client {
                None => builder.with_no_client_auth(),
                Some(client) => {
                    let key = PrivateKeyDer::from_pem_slice(client.key.as_bytes()).expect("PEM");
                    let chain = vec![pem(&client.certificate)];
                    builder.with_client_auth_cert(chain, key).expect("a client")
                }
            };
            config.alpn_protocols = vec![protocol.to_vec()];
            let tcp = TcpStream::connect(self.address).await?;
            let name = ServerName::try_from("localhost").expect("a name");
            let connector = TlsConnector::from(Arc::new(config));
            connector.connect(name, tcp).await
        }

        async fn connect(
            &self,
            protocol: &[u8],
            client: Option<&Identity>,
        ) -> TlsStream<TcpStream> {
            let connected = self.try_connect(protocol, client).await;
            connected.expect("a handshake")
        }
    }

    fn request(uri: &str, token: &str) -> Request<Empty<bytes::Bytes>> {
        let request = Request::get(uri).header("host", "localhost");
        let request = match token {
            "" => request,
            token => request.header(AUTHORIZATION, format!("Bearer {token}")),
        };
        request.body(Empty::new()).expect("a request")
    }

    async fn text(response: Response<hyper::body::Incoming>) -> String {
        let body = response.into_body().collect().await.expect("a body");
        String::from_utf8(body.to_bytes().to_vec()).expect("text")
    }

    #[tokio::test]
    async fn http1_with_a_token_and_without() {
        let server = serve().await;
        let stream = server.connect(b"http/1.1", None).await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("h1");
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        let response = sender
            .send_request(request("/", "secret"))
            .await
            .expect("a response");
        assert_eq!(response.version(), Version::HTTP_11);
        assert_eq!(text(response).await, "ann");
        let response = sender
            .send_request(request("/", ""))
            .await
            .expect("a response");
        assert_eq!(response.status(), 401);
    }

    #[tokio::test]
    async fn http2_with_certificates_good_and_bad() {
        let server = serve().await;
        let other = serve().await;
        for (identity, code) in [
            (&server.certificates.admin, 200),
            (&other.certificates.admin, 401),
        ] {
            let stream = server.connect(b"h2", Some(identity)).await;
            let (mut sender, connection) =
                http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                    .await
                    .expect("h2");
            let mut tasks = JoinSet::new();
            tasks.spawn(connection);
            let uri = "https://localhost/";
            let response = sender
                .send_request(request(uri, ""))
                .await
                .expect("a response");
            assert_eq!(response.version(), Version::HTTP_2);
            assert_eq!(response.status(), code);
        }
    }

    #[tokio::test]
    async fn watches_end_when_the_server_does() {
        let server = serve().await;
        let stream = server.connect(b"h2", None).await;
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("h2");
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        let uri = "https://localhost/api/v1/pods?watch=1";
        let watch = sender
            .send_request(request(uri, "secret"))
            .await
            .expect("a watch");
        server.stop.cancel();
        let open = server.running.await.expect("no panic");
        assert_eq!(open.len(), 1);
        server.closing.cancel();
        server.end_of_watches.cancel();
        assert_eq!(text(watch).await, "");
        assert_eq!(
            finish(open, Duration::from_secs(60), &Clock::real()).await,
            0
        );
    }

    #[tokio::test]
    async fn a_client_that_never_begins_is_cut_off() {
        let server = serve().await;
        for (protocol, sent) in [
            (&b"h2"[..], &b""[..]),
            (b"h2", b"PRI "),
            (b"http/1.1", b"GET "),
        ] {
            let mut stream = server.connect(protocol, None).await;
            stream.write_all(sent).await.expect("written");
            // From here on time passes by itself while nothing happens.
            tokio::time::pause();
            let mut end = Vec::new();
            let read = stream.read_to_end(&mut end);
            let at_most = Duration::from_secs(SILENCE_SECONDS_MAX);
            let ended = tokio::time::timeout(at_most, read).await;
            ended.expect("an end").unwrap_or_default();
            tokio::time::resume();
        }
    }

    async fn send(stream: &mut TlsStream<TcpStream>, text: &str) {
        stream.write_all(text.as_bytes()).await.expect("written");
        stream.flush().await.expect("sent");
    }

    #[tokio::test]
    async fn a_refusal_leaves_the_connection_to_the_next_request() {
        let server = serve().await;
        let mut stream = server.connect(b"http/1.1", None).await;
        let head = "POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n";
        let mut refusal = [0; 4_096];
        for _ in 0..2 {
            send(&mut stream, head).await;
            send(&mut stream, "body").await;
            let bytes = stream.read(&mut refusal).await.expect("an answer");
            let refusal = String::from_utf8_lossy(&refusal[..bytes]);
            assert!(refusal.starts_with("HTTP/1.1 401"), "{refusal}");
            assert!(!refusal.contains("connection: close"), "{refusal}");
        }
        // A body that does not come ends the connection, which the answer says.
        tokio::time::pause();
        send(&mut stream, head).await;
        let mut end = Vec::new();
        stream.read_to_end(&mut end).await.unwrap_or_default();
        let refusal = String::from_utf8(end).expect("text");
        assert!(refusal.starts_with("HTTP/1.1 401"), "{refusal}");
        assert!(refusal.contains("connection: close"), "{refusal}");
    }

    #[tokio::test]
    async fn silent_connections_do_not_keep_others_out() {
        crate::open_files::raise_limit();
        let server = serve().await;
        let mut silent = Vec::new();
        for _ in 0..SILENT {
            let connected = TcpStream::connect(server.address).await;
            silent.push(connected.expect("a connection"));
        }
        for _ in 0..ATTEMPTS_MAX {
            // They have been silent for a while.
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(1)).await;
            tokio::time::resume();
            let at_most = Duration::from_secs(ATTEMPT_SECONDS_MAX);
            let connected = server.try_connect(b"http/1.1", None);
            if let Ok(Ok(_)) = tokio::time::timeout(at_most, connected).await {
                return;
            }
        }
        panic!("nobody is let in");
    }

    #[tokio::test]
    async fn a_port_is_shared_by_those_who_agree() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = Listener::bind(local, true).await.expect("a port");
        let second = Listener::bind(first.address(), true).await;
        assert_eq!(second.expect("the same").address(), first.address());
        Listener::bind(first.address(), false)
            .await
            .expect_err("occupied");
    }

    #[tokio::test]
    async fn an_occupied_port_is_one_line() {
        let server = serve().await;
        let error = Listener::bind(server.address, false)
            .await
            .expect_err("occupied");
        let text = error.to_string();
        assert!(
            text.contains("--secure-port (0 picks a free one)"),
            "{text}"
        );
    }
}
