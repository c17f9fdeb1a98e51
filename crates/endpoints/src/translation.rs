//! Translates between WebSocket clients and kubelets that speak SPDY alone: `StreamTranslatorHandler` and
//! `TunnelingHandler` of Kubernetes 1.36 (`apiserver/pkg/util/proxy`).
//!
//! | client | kubelet | |
//! |---|---|---|
//! | `v5.channel.k8s.io` | SPDY/3.1 with `v4.channel.k8s.io` | [`remote_command`]: each channel of the WebSocket is a stream of SPDY |
//! | `SPDY/3.1+portforward.k8s.io` | SPDY/3.1 with `portforward.k8s.io` | [`tunnel`]: the messages of the WebSocket are the bytes of SPDY |
//!
//! Kubelets that say in their node's status that they take these WebSockets get them as they are, and so do all
//! kubelets those of other protocols.

mod channels;
mod remote_command;
mod spdy;
mod status;
mod tunnel;

use std::time::Duration;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request};
use ringwatch_apimachinery::upgrade::is_web_socket;
use ringwatch_http::{RequestBody, full};
use serde_json::Value;

pub(super) use self::remote_command::{RemoteCommand, Streams, WEB_SOCKET_PROTOCOL};
pub(super) use self::tunnel::tunnel;
use super::errors::Failure;
use super::websocket;

/// The feature that a kubelet declares if it takes these WebSockets itself.
const KUBELET_FEATURE: &str = "ExtendWebSocketsToKubelet";

/// Maximum time until a client has read what a process writes, which somebody may have stopped to look at: the idle
/// time of such connections in kube-apiserver. Then the connection ends.
const STALL_MAX: Duration = Duration::from_secs(4 * 60 * 60);

/// Maximum number of bytes that are sent to the client in a message.
const SENT_BYTES_MAX: usize = 32 << 10;

/// The header with the protocol that is spoken in the streams of SPDY.
const STREAM_PROTOCOL: &str = "x-stream-protocol-version";

/// Returns true if the kubelet of a node takes the WebSockets that are translated for others.
pub(super) fn is_up_to_the_kubelet(node: &Value) -> bool {
    let declared = node.pointer("/status/declaredFeatures");
    let declared = declared.and_then(Value::as_array).into_iter().flatten();
    declared.into_iter().any(|it| it == KUBELET_FEATURE)
}

/// Returns true if the client asks for a WebSocket over which commands are run, in the version that can close streams.
pub(super) fn wants_remote_command(headers: &HeaderMap) -> bool {
    is_web_socket(headers) && websocket::protocols(headers).contains(&WEB_SOCKET_PROTOCOL)
}

/// Returns the protocols of SPDY that the client wants to speak within a WebSocket.
pub(super) fn wanted_tunnels(headers: &HeaderMap) -> Vec<String> {
    if !is_web_socket(headers) {
        return Vec::new();
    }
    let protocols = websocket::protocols(headers).into_iter();
    let tunnels = protocols.filter(|it| it.ends_with(".k8s.io"));
    let tunnels = tunnels.filter_map(|it| it.strip_prefix(tunnel::PREFIX));
    tunnels.map(str::to_owned).collect()
}

/// Turns a request into one for SPDY.
fn to_spdy(request: &mut Request<RequestBody>, protocols: &[String]) -> Result<(), Failure> {
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    for name in [
        "sec-websocket-key",
        "sec-websocket-version",
        "sec-websocket-protocol",
        "sec-websocket-extensions",
    ] {
        headers.remove(name);
    }
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(spdy::PROTOCOL));
    headers.remove(STREAM_PROTOCOL);
    for protocol in protocols {
        let value = HeaderValue::from_str(protocol).map_err(Failure::internal)?;
        headers.append(STREAM_PROTOCOL, value);
    }
    Ok(())
}

/// Returns a request for SPDY to a kubelet.
fn spdy_request(path_and_query: &str, protocol: &str) -> Result<Request<RequestBody>, Failure> {
    let mut request = Request::new(full(""));
    *request.uri_mut() = path_and_query.parse().map_err(Failure::internal)?;
    to_spdy(&mut request, &[protocol.to_owned()])?;
    Ok(request)
}

/// Returns true if the head of an answer says that SPDY is spoken from now on.
fn speaks_spdy(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).map(HeaderValue::as_bytes);
    upgrade.is_some_and(|it| it.eq_ignore_ascii_case(spdy::PROTOCOL.as_bytes()))
}
