//! The common parts of the handlers that call kubelets: the pod, its node's kubelet, and the request that is forwarded.

use http::{Request, Response};
use ringwatch::codec;
use ringwatch::storage::GetOptions;
use ringwatch_http::client::Backend;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::Verb;
use serde_json::Value;

use crate::call::Call;
use crate::errors::{About, Failure};
use crate::forward;

/// Reads the pod that the request is about.
pub(super) async fn pod(call: &Call<'_>) -> Result<Value, Failure> {
    let pod = call
        .store
        .get(call.namespace(), call.name(), GetOptions::default())
        .await
        .map_err(|error| call.fail(error))?;
    codec::tree(&pod).map_err(Failure::internal)
}

/// Returns the node of a pod, once it has one.
pub(super) fn node_of(pod: &Value) -> Option<&str> {
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str);
    node.filter(|node| !node.is_empty())
}

/// Finds the kubelet of a node.
///
/// # Errors
/// 404 when there is no such node, 500 when it does not say where its kubelet is.
pub(super) async fn kubelet(
    call: &Call<'_>,
    node: &str,
    unverified: bool,
) -> Result<Backend, Failure> {
    let node = read_node(call, node).await?;
    call.kubelets
        .backend(&node, unverified, &call.context.clock)
}

/// Reads a node.
///
/// # Errors
/// 404 when there is no such node.
pub(super) async fn read_node(call: &Call<'_>, node: &str) -> Result<Value, Failure> {
    let nodes = call.routes.needed("", "v1", "nodes")?;
    let about = About {
        resource: nodes.resource(),
        name: node,
        verb: Verb::Get,
    };
    let node = nodes.get("", node, GetOptions::default()).await;
    let node = node.map_err(|error| Failure::from_error(&error, about))?;
    codec::tree(&node).map_err(Failure::internal)
}

/// Returns the client's request as a kubelet or another backend gets it. Authentication has taken the client's
/// credentials out of its headers.
pub(super) fn request(
    call: &Call<'_>,
    path_and_query: &str,
    body: RequestBody,
) -> Result<Request<RequestBody>, Failure> {
    forward::forwarded(call.method, call.headers, path_and_query, body)
}

/// Asks a backend to speak what the client wants to speak.
///
/// # Errors
/// 500 when the backend cannot be reached or does not upgrade.
pub(super) async fn upgrade(
    backend: &Backend,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Failure> {
    let upgraded = forward::upgrade(backend, request).await;
    upgraded.map_err(|error| Failure::untranslated(error.to_string()))
}
