//! APIs that other servers serve: passed on to a second server, and to one that does not mean well.

mod conditions;
mod hostile;
mod passed_on;
mod stand_in;
mod traced;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use ringwatch_tls::tls_client::{self, Trust};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::requests;
use crate::support::server::Server;
use crate::support::tls_server::head;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A certificate and its key in files.
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
    pem: String,
}

impl Pair {
    fn write(folder: &Path, name: &str, pem: String, key: &KeyPair) -> Self {
        let [certificate, key_file] =
            ["crt", "key"].map(|extension| folder.join(format!("{name}.{extension}")));
        fs::write(&certificate, &pem).expect("written");
        fs::write(&key_file, key.serialize_pem()).expect("written");
        Self {
            certificate,
            key: key_file,
            pem,
        }
    }

    /// Makes and writes the pair of a server on loopback that is the service of this name.
    fn serving(folder: &Path, service: &str) -> Self {
        let service = format!("{service}.default.svc");
        let names = ["127.0.0.1", "::1", "localhost", &service].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        Self::write(folder, "serving", made.cert.pem(), &made.signing_key)
    }

    /// The flags by which a server shows it.
    fn serving_flags(&self) -> Vec<String> {
        flags(&[
            ("--tls-cert-file", &self.certificate),
            ("--tls-private-key-file", &self.key),
        ])
    }
}

/// The front proxy's authority and certificate.
struct Proxy {
    authority: PathBuf,
    client: Pair,
}

impl Proxy {
    fn new(folder: &Path) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).expect("no names");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = &mut authority.distinguished_name;
        name.push(DnType::CommonName, "front-proxy-ca");
        let authority_key = KeyPair::generate().expect("a key");
        let signed = authority
            .self_signed(&authority_key)
            .expect("a certificate");
        let mut client = CertificateParams::new(Vec::new()).expect("no names");
        let name = &mut client.distinguished_name;
        name.push(DnType::CommonName, "front-proxy-client");
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("a key");
        let issuer = Issuer::new(authority, authority_key);
        let made = client.signed_by(&key, &issuer).expect("a certificate");
        let file = folder.join("front-proxy-ca.crt");
        fs::write(&file, signed.pem()).expect("written");
        Self {
            authority: file,
            client: Pair::write(folder, "front-proxy-client", made.pem(), &key),
        }
    }

    /// The flags of a server that passes requests on.
    fn front_flags(&self) -> Vec<String> {
        flags(&[
            ("--proxy-client-cert-file", &self.client.certificate),
            ("--proxy-client-key-file", &self.client.key),
        ])
    }

    /// The flags of a server that believes what such requests say of their users.
    fn remote_flags(&self) -> Vec<String> {
        let mut all = flags(&[("--requestheader-client-ca-file", &self.authority)]);
        all.push("--requestheader-allowed-names=front-proxy-client".to_owned());
        all
    }
}

fn flags(pairs: &[(&str, &PathBuf)]) -> Vec<String> {
    let written = pairs.iter();
    written
        .map(|(flag, path)| format!("{flag}={}", path.display()))
        .collect()
}

fn start(flags: &[Vec<String>]) -> Server {
    let flags = flags.concat();
    Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A server that passes requests on, with two users who have tokens.
struct Front {
    server: Server,
    client: Client,
    folder: tempfile::TempDir,
}

impl Front {
    async fn start(proxy: &Proxy, more: &[Vec<String>]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = folder.path().join("tokens");
        let users = "secret,admin,1,system:masters\nweak,ann,7,\"makers,menders\"";
        fs::write(&tokens, users).expect("written");
        let own = [
            proxy.front_flags(),
            flags(&[("--token-auth-file", &tokens)]),
            vec!["--authorization-mode=AlwaysAllow".to_owned()],
        ];
        let mut server = start(&[own.concat(), more.concat()]);
        let client = server.client().await;
        Self {
            server,
            client,
            folder,
        }
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<String, (u16, String)> {
        ask(&self.client, method, path, body).await
    }

    async fn get(&self, path: &str) -> Result<Value, (u16, String)> {
        let text = self.ask("GET", path, &Value::Null).await?;
        Ok(serde_json::from_str(&text).expect("JSON"))
    }

    async fn create(&self, path: &str, object: &Value) {
        self.ask("POST", path, object).await.expect("created");
    }

    /// A service that leads to this machine.
    async fn local_service(&self, name: &str) {
        let service = json!({"metadata": {"name": name},
            "spec": {"type": "ExternalName", "externalName": "localhost"}});
        self.create(SERVICES, &service).await;
    }

    /// An API of the version `v1` of a group that a service serves.
    async fn aggregate(&self, group: &str, service: &str, port: u16, trust: &Value) {
        let mut spec = json!({"group": group, "version": "v1", "groupPriorityMinimum": 2000,
            "versionPriority": 10,
            "service": {"namespace": "default", "name": service, "port": port}});
        for (name, value) in trust.as_object().expect("fields") {
            spec[name] = value.clone();
        }
        let object = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("v1.{group}")}, "spec": spec});
        self.create(API_SERVICES, &object).await;
    }

    /// Waits until the condition of an API is this, and gives its message.
    async fn condition(&self, group: &str, status: &str, reason: &str) -> String {
        let path = format!("{API_SERVICES}/v1.{group}");
        let what = format!("v1.{group} is {status}, {reason}");
        let found = eventually(DEADLINE, what, async || {
            let object = self.get(&path).await.expect("there");
            let condition = object["status"]["conditions"][0].clone();
            let is = condition["status"] == status && condition["reason"] == reason;
            if is { Ok(condition) } else { Err(object) }
        });
        let found = found.await;
        assert_eq!(found["type"], "Available");
        found["message"].as_str().expect("a text").to_owned()
    }

    /// Returns a group of aggregated discovery.
    async fn discovered(&self, group: &str) -> Value {
        let answer = self
            .raw("secret", "GET /apis", &format!("Accept: {AGGREGATED}"))
            .await;
        let list: Value = serde_json::from_str(&answer.body).expect("JSON");
        let groups = list["items"].as_array().expect("groups").iter();
        let mut groups = groups.filter(|it| it["metadata"]["name"] == group);
        groups.next().cloned().unwrap_or_default()
    }

    /// The same once the server of the group has said what it has.
    async fn told(&self, group: &str) -> Value {
        eventually(DEADLINE, format!("{group} is discovered"), async || {
            let found = self.discovered(group).await;
            if found["versions"][0]["freshness"] == "Current" {
                Ok(found)
            } else {
                Err(found)
            }
        })
        .await
    }

    /// A connection of our own to the front.
    async fn connect(&self) -> TlsStream<TcpStream> {
        let tls = tls_client::config(Trust::Anyone, None).expect("TLS");
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server.port())).await;
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let connected = TlsConnector::from(Arc::clone(&tls)).connect(name, tcp.expect("tcp"));
        connected.await.expect("a connection")
    }

    /// A request with headers of our own, and all of its answer.
    async fn raw(&self, token: &str, request: &str, headers: &str) -> Answer {
        let mut stream = self.connect().await;
        let request = format!(
            "{request} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
             Connection: close\r\n{headers}\r\n\r\n"
        );
        let exchange = async {
            stream.write_all(request.as_bytes()).await.expect("written");
            let head = head(&mut stream).await.unwrap_or_default();
            let mut rest = Vec::new();
            let whole = stream.read_to_end(&mut rest).await.is_ok();
            (head, rest, whole)
        };
        let exchanged = tokio::time::timeout(DEADLINE, exchange).await;
        let (head, rest, is_whole) = exchanged.expect("in time");
        let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { unchunked(&rest) } else { rest };
        Answer {
            status: head
                .get(9..12)
                .map_or(0, |status| status.parse().expect("a status")),
            head,
            body: String::from_utf8_lossy(&body).into_owned(),
            is_whole,
        }
    }

    /// The first answer to a request that is as it should be: the proxy follows the stored APIServices and their
    /// conditions.
    async fn answers(
        &self,
        token: &str,
        request: &str,
        headers: &str,
        is: impl Fn(&Answer) -> bool,
    ) -> Answer {
        eventually(DEADLINE, format!("{request} is answered so"), async || {
            let answer = self.raw(token, request, headers).await;
            if is(&answer) { Ok(answer) } else { Err(answer) }
        })
        .await
    }
}

/// An answer as it came.
#[derive(Debug)]
struct Answer {
    /// 0 if the connection ended before.
    status: u16,
    head: String,
    body: String,
    /// True if the connection was closed in order.
    is_whole: bool,
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]);
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        let from = end + 2;
        let until = (from + size).min(rest.len());
        body.extend_from_slice(&rest[from..until]);
        rest = &rest[(until + 2).min(rest.len())..];
        if size == 0 {
            break;
        }
    }
    body
}

async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<String, (u16, String)> {
    requests::text_or_refusal(client, requests::request(method, path, body)).await
}

fn encoded(pem: &str) -> String {
    STANDARD.encode(pem)
}
