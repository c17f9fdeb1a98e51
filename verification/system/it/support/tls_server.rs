//! Servers over TLS on loopback, which tests answer by hand.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A certificate, the same in PEM, and its key.
pub(crate) type Certificate = (CertificateDer<'static>, String, PrivateKeyDer<'static>);

/// Makes a certificate for some names that is signed by itself.
pub(crate) fn self_signed(names: Vec<String>) -> Certificate {
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    (made.cert.der().clone(), made.cert.pem(), key.into())
}

/// Listens on loopback and has every connection answered by a task of its own, until the tasks are dropped. A
/// connection whose handshake fails is closed.
pub(crate) async fn listen<F>(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    answer: impl Fn(TlsStream<TcpStream>) -> F + Clone + Send + 'static,
) -> (SocketAddr, JoinSet<()>)
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a key of the certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            connections.spawn(async move {
                if let Ok(stream) = acceptor.accept(tcp).await {
                    let _ = answer(stream).await;
                }
            });
        }
    });
    (address, tasks)
}

/// Reads the head of a request or an answer, up to its empty line.
pub(crate) async fn head(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
