//! Certificates and authorities that change while the server runs: new connections go by the new ones, clients of those
//! that there are are judged by the new authorities, and what cannot be used changes nothing.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use ringwatch_tls::client_identity::ClientIdentity;
use ringwatch_tls::tls_client::{self, Trust};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::server::Server;

/// A part of the line that the server logs when a file cannot be used.
const REFUSAL: &str = "has changed and is invalid";

/// A certificate and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// An authority that signs certificates.
pub(crate) struct Authority {
    pub(crate) pem: String,
    pub(crate) issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::from_ca_cert_pem(&pem, key).unwrap();
        Self { pem, issuer }
    }

    fn sign(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> Pair {
        let names = ["localhost", "127.0.0.1"].map(String::from);
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![usage];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair {
            certificate: certificate + &self.pem,
            key: key.serialize_pem(),
        }
    }

    pub(crate) fn server(&self) -> Pair {
        self.sign("server", ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn client(&self, name: &str) -> Pair {
        self.sign(name, ExtendedKeyUsagePurpose::ClientAuth)
    }
}

/// A file for flags, outside of the server's folder, which comes later.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file as a whole, and returns where it is.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let new = self.path("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, &path).unwrap();
        path
    }
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn start(flags: &[String]) -> Server {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Server::start(&flags)
}

fn first(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

async fn connect(port: u16, identity: Option<&Pair>) -> TlsStream<TcpStream> {
    let identity =
        identity.map(|pair| ClientIdentity::read(&pair.certificate, pair.key.as_bytes()).unwrap());
    let config = tls_client::config(Trust::Anyone, identity.as_ref()).unwrap();
    let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(config);
    connector.connect(name, tcp.unwrap()).await.unwrap()
}

/// The certificate that a new connection is shown.
async fn served(port: u16) -> CertificateDer<'static> {
    let stream = connect(port, None).await;
    stream.get_ref().1.peer_certificates().unwrap()[0]
        .clone()
        .into_owned()
}

/// The server's answer to the question who the client of a connection is.
async fn who_am_i(stream: &mut TlsStream<TcpStream>, headers: &str) -> String {
    let body = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let length = body.len();
    let request = format!(
        "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    // The head and the body may come one by one.
    let mut answer = Vec::new();
    while !is_whole(&answer) {
        let read = stream.read_buf(&mut answer).await.unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&answer));
    }
    String::from_utf8(answer).unwrap()
}

/// True if an answer has all of its body.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.parse::<usize>().unwrap())
    });
    match length {
        Some(length) => body.len() >= length,
        None => body.ends_with("0\r\n\r\n"),
    }
}

fn refusals(server: &Server) -> usize {
    server.log().matches(REFUSAL).count()
}

#[tokio::test]
async fn a_new_serving_certificate_counts_without_a_restart() {
    let files = Files::new();
    let (old, new) = (Authority::new("a").server(), Authority::new("b").server());
    let mut server = start(&[
        flag("tls-cert-file", &files.write("crt", &old.certificate)),
        flag("tls-private-key-file", &files.write("key", &old.key)),
    ]);
    let port = server.port();
    server.client().await;
    assert_eq!(served(port).await, first(&old.certificate));
    let mut before = connect(port, None).await;

    files.write("crt", &new.certificate);
    let is_refused = async || refusals(&server) > 0;
    eventually(DEADLINE, "a pair that does not match", is_refused).await;
    assert_eq!(served(port).await, first(&old.certificate));
    files.write("key", &new.key);
    let is_new = async || served(port).await == first(&new.certificate);
    eventually(DEADLINE, "the new certificate", is_new).await;
    assert_eq!(refusals(&server), 1, "{}", server.log());
    let answer = who_am_i(&mut before, "").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    // The kubeconfig says whom to trust now.
    server.client().await;
}

#[tokio::test]
async fn new_authorities_of_clients_count_without_a_restart() {
    let files = Files::new();
    let [old, new, proxies] = ["old", "new", "proxies"].map(Authority::new);
    let mut server = start(&[
        flag("client-ca-file", &files.write("clients", &old.pem)),
        flag(
            "requestheader-client-ca-file",
            &files.write("proxies", &old.pem),
        ),
    ]);
    let port = server.port();
    let api: Api<ConfigMap> = Api::namespaced(server.client().await, "kube-system");
    let (ann, bob, proxy) = (old.client("ann"), new.client("bob"), proxies.client("p"));
    let is = async |pair: &Pair, headers: &str, name: &str| {
        let answer = who_am_i(&mut connect(port, Some(pair)).await, headers).await;
        answer.contains(&format!("\"username\":\"{name}\""))
    };
    assert!(is(&ann, "", "ann").await);
    assert!(!is(&bob, "", "bob").await);
    let mut open = [
        connect(port, Some(&ann)).await,
        connect(port, Some(&bob)).await,
    ];
    assert!(
        who_am_i(&mut open[0], "")
            .await
            .contains("\"username\":\"ann\"")
    );

    let half = &new.pem[..new.pem.len() / 2];
    files.write("clients", half);
    let is_refused = async || refusals(&server) > 0;
    eventually(DEADLINE, "a file that is half written", is_refused).await;
    assert!(is(&ann, "", "ann").await);
    files.write("clients", &new.pem);
    let is_bob = async || is(&bob, "", "bob").await;
    eventually(DEADLINE, "the new authority of clients", is_bob).await;
    assert!(!is(&ann, "", "ann").await);
    let answers = [
        who_am_i(&mut open[0], "").await,
        who_am_i(&mut open[1], "").await,
    ];
    assert!(answers[0].starts_with("HTTP/1.1 401"), "{}", answers[0]);
    assert!(
        answers[1].contains("\"username\":\"bob\""),
        "{}",
        answers[1]
    );

    let for_eve = "X-Remote-User: eve\r\n";
    assert!(!is(&proxy, for_eve, "eve").await);
    files.write("proxies", &proxies.pem);
    let is_eve = async || is(&proxy, for_eve, "eve").await;
    eventually(DEADLINE, "the new authority of proxies", is_eve).await;
    assert_eq!(refusals(&server), 1, "{}", server.log());

    // Servers of aggregated APIs are told of both.
    let told = async |key: &str, authority: &Authority| {
        let map = api.get("extension-apiserver-authentication").await;
        let data = map.unwrap().data.unwrap_or_default();
        data[key].replace('\r', "").contains(authority.pem.trim())
    };
    eventually(DEADLINE, "the authority of clients is told", async || {
        told("client-ca-file", &new).await
    })
    .await;
    eventually(DEADLINE, "the authority of proxies is told", async || {
        told("requestheader-client-ca-file", &proxies).await
    })
    .await;
}

#[tokio::test]
async fn certificates_of_version_1_name_users_and_refused_ones_are_in_the_log() {
    use ringwatch_testing::certificates::{AUTHORITY, RSA_2048, UNDER_ROOT_1, VERSION_1};
    let pair = |certificate: &str, key: &str| Pair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    };
    let files = Files::new();
    let mut server = start(&[flag("client-ca-file", &files.write("ca", AUTHORITY))]);
    server.client().await;
    for (certificate, key) in [VERSION_1, RSA_2048] {
        let mut stream = connect(server.port(), Some(&pair(certificate, key))).await;
        let answer = who_am_i(&mut stream, "").await;
        assert!(answer.contains("\"username\":\"ann\""), "{answer}");
    }
    let stranger = pair(UNDER_ROOT_1, VERSION_1.1);
    let mut stream = connect(server.port(), Some(&stranger)).await;
    let answer = who_am_i(&mut stream, "").await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    server
        .logged("x509: certificate signed by unknown authority")
        .await;
    server.logged("CN=ann").await;
}
