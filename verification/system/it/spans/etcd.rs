//! Requests to etcd: they are spans, and etcd is told the trace.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::collector::{Collector, Manner, hex, named};
use super::{CONFIG_MAPS, NOT_SAMPLED, SAMPLED, TRACE, ask, config, flag};
use crate::support::etcd::Etcd;
use crate::support::server::Server;

/// The paths of requests, with the `traceparent` of each.
type Seen = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// A proxy before an etcd that sees the metadata of requests, until it is dropped.
struct Proxy {
    address: SocketAddr,
    seen: Seen,
    _serving: JoinSet<()>,
}

impl Proxy {
    async fn start(etcd: &Etcd) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let behind = etcd.endpoint().replace("http://", "");
        let seen = Seen::default();
        let mut serving = JoinSet::new();
        let noted = Arc::clone(&seen);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(pass_on(socket, behind.clone(), Arc::clone(&noted)));
            }
        });
        Self {
            address,
            seen,
            _serving: serving,
        }
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the `traceparent` of each transaction since the last call.
    fn transactions(&self) -> Vec<Option<String>> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        let transactions = seen.into_iter().filter(|(path, _)| path.ends_with("/Txn"));
        transactions.map(|(_, parent)| parent).collect()
    }
}

/// Passes the requests of a connection on, and notes them.
async fn pass_on(socket: TcpStream, etcd: String, seen: Seen) {
    let behind = TokioIo::new(TcpStream::connect(etcd).await.unwrap());
    let (requests, behind) = client::conn::http2::handshake(TokioExecutor::new(), behind)
        .await
        .unwrap();
    let answer = service_fn(move |request: Request<Incoming>| {
        let parent = request.headers().get("traceparent");
        let parent = parent.map(|it| it.to_str().unwrap().to_owned());
        let path = request.uri().path().to_owned();
        seen.lock().unwrap().push((path, parent));
        requests.clone().send_request(request)
    });
    let serving = server::conn::http2::Builder::new(TokioExecutor::new());
    let serving = serving.serve_connection(TokioIo::new(socket), answer);
    // Either end may close the connection.
    tokio::select! {
        _ = serving => {}
        _ = behind => {}
    }
}

async fn create(admin: &kube::Client, name: &str, parent: &str) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let created = ask(admin, "POST", CONFIG_MAPS, parent, &object.to_string()).await;
    assert_eq!(created, 201);
}

/// Returns true if one of the transactions has this `traceparent`.
fn has(transactions: &[Option<String>], parent: &str) -> bool {
    transactions.iter().any(|it| it.as_deref() == Some(parent))
}

#[tokio::test]
async fn requests_to_etcd_are_spans_which_etcd_may_continue() {
    let Some(etcd) = Etcd::start("spans of requests to etcd") else {
        return;
    };
    let proxy = Proxy::start(&etcd).await;
    let collector = Collector::start(Manner::Takes).await;
    let file = config(collector.address, 0);
    let (mut server, admin) =
        Server::ready(&["--etcd-servers", &proxy.endpoint(), &flag(&file)]).await;
    proxy.transactions();
    create(&admin, "sampled", SAMPLED).await;
    let sampled = proxy.transactions();
    create(&admin, "not-sampled", NOT_SAMPLED).await;
    let not_sampled = proxy.transactions();
    // A batch waits for five seconds; the end does not.
    server.stop().await;
    let trace = collector.all();
    let stored = named(&trace, "Create etcd3");
    let txn = named(&trace, "etcdserverpb.KV/Txn");
    assert_eq!(txn.parent(), stored.id());
    assert_eq!(txn.attributes["rpc.system.name"], "grpc");
    assert_eq!(hex(&txn.span.trace_id), TRACE);
    let parent = format!("00-{TRACE}-{}-01", txn.id());
    assert!(has(&sampled, &parent), "{parent} in {sampled:?}");
    let is_passed_on = |it: &String| it.contains(TRACE) && it.ends_with("-00");
    let passed_on = not_sampled.iter().flatten().any(is_passed_on);
    assert!(passed_on, "{not_sampled:?}");
}

#[tokio::test]
async fn without_the_flag_the_callers_span_goes_on_to_etcd() {
    let Some(etcd) = Etcd::start("the callers' spans in requests to etcd") else {
        return;
    };
    let proxy = Proxy::start(&etcd).await;
    let (_server, admin) = Server::ready(&["--etcd-servers", &proxy.endpoint()]).await;
    // Nobody asked for what the server writes when it starts.
    let own = proxy.transactions();
    assert!(!own.is_empty());
    assert!(own.iter().all(Option::is_none), "{own:?}");
    create(&admin, "a", SAMPLED).await;
    let transactions = proxy.transactions();
    assert!(has(&transactions, SAMPLED), "{transactions:?}");
}
