//! The `exec`, `attach` and `portforward` subresources of pods: an upgrade that the kubelet of
//! the pod's node answers.

use form_urlencoded::Serializer;
use http::{Method, Response};
use ringwatch_apimachinery::upgrade::is_upgrade;
use ringwatch_http::client::Backend;
use ringwatch_http::{ResponseBody, full};
use ringwatch_registry::Verb;
use serde_json::{Map, Value};

use super::connect::admit_connection;
use super::kubelet_target::{node_of, pod, read_node, request, upgrade};
use super::pod_container::container;
use crate::call::Call;
use crate::errors::Failure;
use crate::translation::{self, RemoteCommand, Streams, WEB_SOCKET_PROTOCOL, tunnel};
use crate::websocket;

/// The streams that a client may ask for with the kubelet's names of them, in the kubelet's order.
const STREAMS: [(&str, &str); 4] = [
    ("stderr", "error"),
    ("stdin", "input"),
    ("stdout", "output"),
    ("tty", "tty"),
];

/// Upgrades the connections to client and kubelet and joins them.
///
/// # Errors
/// 403 for a user who may not create the subresource, 404 for a pod or node that does not exist, 400 for a container
/// that the pod does not have, for a pod without a node, and for a request that is no upgrade; 500 when the kubelet
/// cannot be asked.
pub(crate) async fn pod_stream(call: &Call<'_>) -> Result<Response<ResponseBody>, Failure> {
    // A client upgrades with a GET, but running something in a pod needs more permission than reading:
    // `ensureAuthorizedForVerb` of Kubernetes 1.36 (`pkg/registry/core/pod/rest`).
    if call.verb != Verb::Create {
        call.check("create").await?;
    }
    let ports = ports(call)?;
    admit_connection(call, own_options(call, &ports)).await?;
    let pod = pod(call).await?;
    let path = match call.info.subresource.as_str() {
        "portforward" => portforward(call, &ports),
        subresource => in_container(call, &pod, subresource)?,
    };
    let node = node_of(&pod).ok_or_else(|| {
        let name = call.name();
        Failure::bad_request(format!("pod {name} does not have a host assigned"))
    })?;
    let node = read_node(call, node).await?;
    let backend = call.kubelets.backend(&node, false, &call.context.clock)?;
    if !is_upgrade(call.headers) {
        return Err(Failure::bad_request("Upgrade request required"));
    }
    if !translation::is_up_to_the_kubelet(&node)
        && let Some(translated) = translated(call, &backend, &path).await
    {
        return translated;
    }
    upgrade(&backend, request(call, &path, full(""))?).await
}

/// Answers a client that speaks WebSockets which kubelets did not always take; `None` if it speaks something else.
async fn translated(
    call: &Call<'_>,
    backend: &Backend,
    path: &str,
) -> Option<Result<Response<ResponseBody>, Failure>> {
    if call.info.subresource == "portforward" {
        let tunnels = translation::wanted_tunnels(call.headers);
        if tunnels.is_empty() {
            return None;
        }
        if call.method != Method::GET {
            return Some(Err(Failure::handshake_method()));
        }
        let request = match request(call, path, full("")) {
            Ok(request) => request,
            Err(failure) => return Some(Err(failure)),
        };
        return Some(tunnel(call.headers, backend, request, &tunnels).await);
    }
    if !translation::wants_remote_command(call.headers) {
        return None;
    }
    if call.method != Method::GET {
        return Some(Err(Failure::handshake_method()));
    }
    let wants = |stream| call.query.switch(stream) == Some(true);
    let command = RemoteCommand {
        backend: backend.clone(),
        path_and_query: path.to_owned(),
        streams: Streams {
            stdin: wants("stdin"),
            stdout: wants("stdout"),
            stderr: wants("stderr"),
            tty: wants("tty"),
        },
    };
    Some(websocket::accept(
        call.headers,
        Some(WEB_SOCKET_PROTOCOL),
        command,
    ))
}

/// Returns the options that only one of the subresources has.
fn own_options(call: &Call<'_>, ports: &[String]) -> Map<String, Value> {
    let mut options = Map::new();
    let command = call.query.all("command");
    if call.info.subresource == "exec" && !command.is_empty() {
        options.insert("command".to_owned(), command.into());
    }
    let ports: Vec<i32> = ports.iter().filter_map(|port| port.parse().ok()).collect();
    if !ports.is_empty() {
        options.insert("ports".to_owned(), ports.into());
    }
    options
}

/// Returns the ports to forward; only numbers are ports.
fn ports(call: &Call<'_>) -> Result<Vec<String>, Failure> {
    if call.info.subresource != "portforward" {
        return Ok(Vec::new());
    }
    let ports = call.query.all("ports");
    for port in &ports {
        port.parse::<i32>().map_err(|_| {
            Failure::bad_request(format!(
                "strconv.ParseInt: parsing {port:?}: invalid syntax"
            ))
        })?;
    }
    Ok(ports)
}

fn portforward(call: &Call<'_>, ports: &[String]) -> String {
    let path = format!("/portForward/{}/{}", call.namespace(), call.name());
    if ports.is_empty() {
        return path;
    }
    let mut query = Serializer::new(String::new());
    query.append_pair("port", &ports.join(","));
    format!("{path}?{}", query.finish())
}

fn in_container(call: &Call<'_>, pod: &Value, subresource: &str) -> Result<String, Failure> {
    let (namespace, name) = (call.namespace(), call.name());
    let container = container(pod, name, call.query.first("container"))?;
    let mut query = Serializer::new(String::new());
    if subresource == "exec" {
        for word in call.query.all("command") {
            query.append_pair("command", &word);
        }
    }
    for (stream, theirs) in STREAMS {
        if call.query.switch(stream) == Some(true) {
            query.append_pair(theirs, "1");
        }
    }
    let query = query.finish();
    Ok(format!(
        "/{subresource}/{namespace}/{name}/{container}?{query}"
    ))
}
