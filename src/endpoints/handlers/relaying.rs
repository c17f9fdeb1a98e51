//! What the handlers that ask kubelets have in common: the pod, its node's kubelet, and the
//! headers that go on.

use http::header::{AUTHORIZATION, CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, Request, Response};
use serde_json::Value;

use super::super::body::{RequestBody, ResponseBody, full};
use super::super::call::Call;
use super::super::errors::{About, Failure};
use super::super::impersonation;
use super::super::relay::{Backend, RelayError, Relayed, exchange};
use crate::codec;
use crate::storage::GetOptions;

/// What is between two neighbours and goes no further.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The pod that the request is about.
pub(super) async fn pod(call: &Call<'_>) -> Result<Value, Failure> {
    let pod = call
        .store
        .get(call.namespace(), call.name(), GetOptions::default())
        .await
        .map_err(|error| call.fail(error))?;
    codec::tree(&pod).map_err(Failure::internal)
}

/// The node of a pod, once it has one.
pub(super) fn node_of(pod: &Value) -> Option<&str> {
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str);
    node.filter(|node| !node.is_empty())
}

/// The kubelet of a node.
///
/// # Errors
/// 404 when there is no such node, 500 when it does not say where its kubelet is.
pub(super) async fn kubelet(
    call: &Call<'_>,
    node: &str,
    unverified: bool,
) -> Result<Backend, Failure> {
    let nodes = call.routes.needed("", "v1", "nodes")?;
    let about = About {
        resource: nodes.resource(),
        name: node,
        verb: "get",
    };
    let node = nodes.get("", node, GetOptions::default()).await;
    let node = node.map_err(|error| Failure::of(&error, about))?;
    let node = codec::tree(&node).map_err(Failure::internal)?;
    call.kubelets.backend(&node, unverified)
}

/// Whether the client wants to speak something else than HTTP from now on. On HTTP/2 nobody can.
pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    let options = headers.get_all(CONNECTION).into_iter();
    let mut options = options.filter_map(|value| value.to_str().ok());
    options.any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// The client's request as the kubelet gets it: without the client's credentials.
pub(super) fn request(
    call: &Call<'_>,
    path_and_query: &str,
    body: RequestBody,
) -> Result<Request<RequestBody>, Failure> {
    let request = Request::builder().method(call.method).uri(path_and_query);
    let mut request = request.body(body).map_err(Failure::internal)?;
    request.headers_mut().clone_from(call.headers);
    request.headers_mut().remove(AUTHORIZATION);
    impersonation::strip(request.headers_mut());
    Ok(request)
}

/// Takes away what is only between neighbours.
pub(super) fn strip(headers: &mut HeaderMap) {
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Asks the kubelet to speak what the client wants to speak, and has both joined if it does. A
/// refusal goes to the client as it is.
///
/// # Errors
/// 500 when the kubelet cannot be reached or does not upgrade.
pub(super) async fn upgrade(
    call: &Call<'_>,
    backend: &Backend,
    path_and_query: &str,
) -> Result<Response<ResponseBody>, Failure> {
    let request = request(call, path_and_query, full(""))?;
    match exchange(backend, request).await {
        Ok(Relayed::Switched(head, tunnel)) => {
            let mut response = head.map(|()| full(""));
            response.extensions_mut().insert(tunnel);
            Ok(response)
        }
        Ok(Relayed::Answered(mut answer)) if answer.status().as_u16() >= 400 => {
            strip(answer.headers_mut());
            Ok(answer)
        }
        Ok(Relayed::Answered(answer)) => Err(Failure::untranslated(format!(
            "invalid upgrade response: status code {}",
            answer.status().as_u16()
        ))),
        Err(error @ RelayError::Http(_)) => Err(Failure::untranslated(error.to_string())),
        Err(error) => Err(Failure::untranslated(format!(
            "error dialing backend: {error}"
        ))),
    }
}
