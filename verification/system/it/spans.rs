//! Spans of requests, exported to a collector that the tests serve.

mod collector;
mod etcd;
mod exemplars;
mod failures;
mod traces;

use std::io::Write;
use std::net::SocketAddr;

use http::Request;
use ringwatch_server::{Builder, InProcessServer};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use tempfile::NamedTempFile;

use self::collector::{Collector, Manner};
use crate::support::in_process::client;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// The parameters of a watch that begins with the state and ends after some seconds, in which a busy machine sends the
/// state.
const WATCH_LIST: &str = "watch=1&timeoutSeconds=5&sendInitialEvents=true&allowWatchBookmarks=true\
    &resourceVersionMatch=NotOlderThan";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const NOT_SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// A file for the flag that names a collector.
fn config(address: SocketAddr, per_million: u32) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    write!(
        file,
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n\
         endpoint: {address}\nsamplingRatePerMillion: {per_million}\n"
    )
    .unwrap();
    file
}

/// The flag with this file.
fn flag(file: &NamedTempFile) -> String {
    format!("--tracing-config-file={}", file.path().display())
}

async fn start(file: &NamedTempFile, change: impl FnOnce(Builder) -> Builder) -> InProcessServer {
    let builder = InProcessServer::builder().flag(flag(file));
    change(builder).start().await.unwrap()
}

/// Starts a server that samples no request of its own accord, with its collector and a client of its admin.
async fn collected() -> (Collector, InProcessServer, kube::Client) {
    let collector = Collector::start(Manner::Takes).await;
    let server = start(&config(collector.address, 0), |it| it).await;
    let admin = client(&server).await;
    (collector, server, admin)
}

/// Sends a request with a caller's span, and returns the status.
async fn ask(client: &kube::Client, method: &str, path: &str, parent: &str, body: &str) -> u16 {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    if !parent.is_empty() {
        request = request.header("traceparent", parent);
    }
    let body = kube::client::Body::from(body.as_bytes().to_vec());
    let answer = client.send(request.body(body).unwrap()).await.unwrap();
    let (head, body) = answer.into_parts();
    body.collect_bytes().await.unwrap();
    head.status.as_u16()
}
