//! Components that answer, that are unhealthy, that are not there, and that do not exist.

use ringwatch::meta::{FieldSelector, LabelSelector};
use ringwatch_testing::eventually::DEADLINE;
use ringwatch_tls::verifiers::ServerVerifier;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::*;

fn statuses(components: Vec<Component>) -> ComponentStatuses {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ServerVerifier::any(&provider)))
        .with_no_client_auth();
    ComponentStatuses {
        components,
        tls: Arc::new(tls),
        clock: Clock::real(),
        versioner: Versioner::default(),
    }
}

fn page(name: &'static str, url: String) -> Component {
    let probe = Probe::Page(url);
    Component { name, probe }
}

fn checked(name: &'static str, outcome: Result<(), String>) -> Component {
    let probe = Probe::Check(ringwatch_endpoints::health::check(move || outcome.clone()));
    Component { name, probe }
}

/// A page that answers once with this status and body; where it is.
async fn answers(head: &'static str, body: &'static str, pages: &mut JoinSet<()>) -> String {
    let made = rcgen::generate_simple_self_signed(vec!["elsewhere".to_owned()]);
    let made = made.expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a key of the certificate");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    pages.spawn(async move {
        let (tcp, _) = listener.accept().await.expect("a connection");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let mut stream = acceptor.accept(tcp).await.expect("a handshake");
        let mut asked = [0; 1024];
        let length = stream.read(&mut asked).await.expect("a request");
        let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
        assert!(asked.starts_with("GET /healthz HTTP/1.1"), "{asked}");
        let length = body.len();
        let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await.expect("written");
        stream.shutdown().await.expect("written");
    });
    format!("https://{address}/healthz")
}

/// A page where nobody listens while the socket lives.
fn silent() -> (String, TcpSocket) {
    let socket = TcpSocket::new_v4().expect("a socket");
    let any = "127.0.0.1:0".parse().expect("an address");
    socket.bind(any).expect("a port");
    let address = socket.local_addr().expect("an address");
    (format!("https://{address}/healthz"), socket)
}

async fn status(statuses: &ComponentStatuses, name: &str) -> Value {
    let key = format!("/componentstatuses/{name}");
    let object = statuses.get(&key, GetOptions::default()).await;
    serde_json::from_slice(&object.expect("a status").bytes()).expect("JSON")
}

fn condition(status: &str, message: &str) -> Value {
    json!([{"type": "Healthy", "status": status, "message": message}])
}

#[tokio::test]
async fn pages_are_shown_as_they_answer() {
    let mut pages = JoinSet::new();
    let well = answers("200 OK", "ok", &mut pages).await;
    let ill = answers("500 Internal Server Error", "[-]leader failed", &mut pages).await;
    let (nowhere, _socket) = silent();
    let statuses = statuses(vec![
        page("well", well),
        page("ill", ill),
        page("gone", nowhere.clone()),
    ]);
    let object = json!({"kind": "ComponentStatus", "apiVersion": "v1",
        "metadata": {"name": "well"}, "conditions": condition("True", "ok")});
    assert_eq!(status(&statuses, "well").await, object);
    assert_eq!(
        status(&statuses, "ill").await["conditions"],
        condition("False", "HTTP probe failed with statuscode: 500")
    );
    let address = nowhere.trim_start_matches("https://");
    let address = address.trim_end_matches("/healthz");
    let refused = format!("Get \"{nowhere}\": dial tcp {address}: connect: connection refused");
    assert_eq!(
        status(&statuses, "gone").await["conditions"],
        condition("False", &refused)
    );
    while let Some(page) = pages.join_next().await {
        page.expect("an answer");
    }
}

#[tokio::test]
async fn the_store_is_told_by_its_check() {
    let statuses = statuses(vec![
        checked("well", Ok(())),
        checked("ill", Err("no answer".to_owned())),
    ]);
    assert_eq!(
        status(&statuses, "well").await["conditions"],
        condition("True", "ok")
    );
    assert_eq!(
        status(&statuses, "ill").await["conditions"],
        json!([{"type": "Healthy", "status": "False", "error": "no answer"}])
    );
    let unknown = statuses.get("/componentstatuses/x", GetOptions::default());
    let unknown = unknown.await.expect_err("no such part");
    assert_eq!(unknown.to_string(), "componentstatus \"x\" not found");
}

#[tokio::test]
async fn a_list_asks_all_at_the_same_time() {
    // Each is answered when the other has been asked as well.
    let both = Arc::new(Barrier::new(2));
    let waits = |name| {
        let both = Arc::clone(&both);
        let check: Check = Arc::new(move || {
            let both = Arc::clone(&both);
            Box::pin(async move {
                both.wait().await;
                Ok(())
            })
        });
        let probe = Probe::Check(check);
        Component { name, probe }
    };
    let statuses = statuses(vec![waits("a"), waits("b")]);
    let list = statuses.get_list("/componentstatuses/", ListOptions::default());
    let list = tokio::time::timeout(DEADLINE, list).await;
    let list = list.expect("both were asked").expect("a list");
    let names: Vec<_> = list.items.iter().map(|it| it.name()).collect();
    assert_eq!((names, list.revision), (vec!["a", "b"], 0));
}

#[tokio::test]
async fn selectors_see_the_name_alone() {
    let statuses = statuses(vec![checked("a", Ok(()))]);
    for (labels, fields, count) in [
        ("", "", 1),
        ("x=y", "", 0),
        ("x!=y", "", 1),
        ("", "metadata.name=a", 1),
        ("", "metadata.name=b", 0),
        ("", "metadata.name!=a", 0),
        ("", "metadata.namespace=a", 0),
    ] {
        let mut options = ListOptions::default();
        options.predicate.label = LabelSelector::parse(labels).expect("a selector");
        options.predicate.field = FieldSelector::parse(fields).expect("a selector");
        let list = statuses.get_list("/componentstatuses/", options).await;
        assert_eq!(
            list.expect("a list").items.len(),
            count,
            "{labels} {fields}"
        );
    }
}
