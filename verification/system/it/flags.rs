//! Flags of kube-apiserver about TLS, HTTP and the end of the server, over real connections.

mod deletion;
mod http;
mod shutdown;
mod start;
mod tls;

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringwatch_server::{Builder, InProcessServer};
use ringwatch_tls::verifiers::ServerVerifier;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, DEFAULT_VERSIONS, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The header of an administrator's requests.
const ADMIN: &str = "Authorization: Bearer secret\r\n";

/// A folder with the tokens that servers of these tests take.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("tokens", "secret,ann,1,system:masters\n");
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the flag that names the tokens.
    fn tokens(&self) -> String {
        format!("--token-auth-file={}", self.path().join("tokens").display())
    }

    /// Starts a server in this process with these flags.
    async fn serve(&self, flags: &[&str]) -> InProcessServer {
        let builder = InProcessServer::builder().flag(self.tokens());
        let builder = flags
            .iter()
            .fold(builder, |builder, flag| builder.flag(*flag));
        Builder::start(builder).await.unwrap()
    }
}

fn port(server: &InProcessServer) -> u16 {
    let (_, port) = server.url().rsplit_once(':').unwrap();
    port.parse().unwrap()
}

/// Returns the settings of a client that verifies nothing.
fn anyone(versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let any = Arc::new(ServerVerifier::any(&provider));
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(any)
        .with_no_client_auth()
}

async fn dial(port: u16, name: &str, config: ClientConfig) -> io::Result<TlsStream<TcpStream>> {
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, tcp).await
}

/// Returns the answer to a request on a connection of its own, head and body, with the names of headers in lower case.
async fn ask(port: u16, line: &str, headers: &str) -> String {
    let mut stream = dial(port, "localhost", anyone(DEFAULT_VERSIONS))
        .await
        .unwrap();
    send(&mut stream, line, headers).await;
    let mut answer = Vec::new();
    // The end of a connection need not be announced.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// Writes a request without a body, the last of its connection.
async fn send(stream: &mut TlsStream<TcpStream>, line: &str, headers: &str) {
    let request =
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}
