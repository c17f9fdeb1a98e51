//! The `proxy` subresource of nodes: any request to the kubelet, and its answer as it is.

use http::header::LOCATION;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::Map;

use super::super::body::{RequestBody, ResponseBody, full};
use super::super::call::Call;
use super::super::errors::Failure;
use super::super::relay::{Relayed, exchange};
use super::connect::admit_connection;
use super::relaying::{is_upgrade, kubelet, request, strip, upgrade};
use crate::registry::Error;

/// How many segments a path has before that of the kubelet: `/api/v1/nodes/{name}/proxy`.
const SEGMENTS_BEFORE: usize = 5;

/// Relays the request.
///
/// # Errors
/// 400 for a name that names no node, 404 for a node that does not exist, 405 for another port than
/// the kubelet's, 503 when the kubelet cannot be asked.
pub(in super::super) async fn node_proxy(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let (node, port) = node_and_port(call.name()).ok_or_else(|| {
        let name = call.name();
        Failure::bad_request(format!("invalid node request {name:?}"))
    })?;
    let path = kubelet_path(&call.info.path);
    let options = Map::from_iter([("path".to_owned(), path.into())]);
    admit_connection(call, options).await?;
    let backend = kubelet(call, node, false).await?;
    if !port.is_empty() && port != backend.port.to_string() {
        return Err(call.fail(Error::MethodNotSupported(
            "this server relays to no other port of a node than the kubelet's".to_owned(),
        )));
    }
    let query = call.query.encode();
    let query = if query.is_empty() {
        query
    } else {
        format!("?{query}")
    };
    if is_upgrade(call.headers) {
        return upgrade(call, &backend, &format!("{path}{query}")).await;
    }
    if path.is_empty() && matches!(*call.method, Method::GET | Method::HEAD) {
        return redirect(&format!("{}/{query}", call.info.path));
    }
    let path = if path.is_empty() { "/" } else { path };
    let mut request = request(call, &format!("{path}{query}"), body)?;
    strip(request.headers_mut());
    match exchange(&backend, request).await {
        Ok(Relayed::Answered(mut answer)) => {
            strip(answer.headers_mut());
            Ok(answer)
        }
        Ok(Relayed::Switched(..)) => Err(unreachable("an upgrade that nobody asked for")),
        Err(error) => Err(unreachable(&error.to_string())),
    }
}

fn unreachable(why: &str) -> Failure {
    Failure::service_unavailable(format!("error trying to reach service: {why}"))
}

/// Relative links of the kubelet's first page need the slash.
fn redirect(location: &str) -> Result<Response<ResponseBody>, Failure> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let location = HeaderValue::try_from(location).map_err(Failure::internal)?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// What follows `proxy` in a path, as the client wrote it.
fn kubelet_path(path: &str) -> &str {
    let mut rest = path;
    for _ in 0..SEGMENTS_BEFORE {
        rest = rest.trim_start_matches('/');
        rest = rest.find('/').map_or("", |end| &rest[end..]);
    }
    rest
}

/// The parts of `node`, `node:port` or `scheme:node:port`; the port may be empty.
fn node_and_port(name: &str) -> Option<(&str, &str)> {
    let parts: Vec<_> = name.split(':').collect();
    let (node, port) = match *parts.as_slice() {
        [node] => (node, ""),
        [node, port] => (node, port),
        ["" | "http" | "https", node, port] => (node, port),
        _ => return None,
    };
    (!node.is_empty()).then_some((node, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelets_path_is_left_as_it_was_written() {
        for (path, kubelets) in [
            ("/api/v1/nodes/n/proxy", ""),
            ("/api/v1/nodes/n/proxy/", "/"),
            ("/api/v1/nodes/proxy/proxy/a%2Fb/", "/a%2Fb/"),
            ("//api/v1/nodes/n:10250/proxy/healthz", "/healthz"),
        ] {
            assert_eq!(kubelet_path(path), kubelets, "{path}");
        }
    }

    #[test]
    fn names_may_have_a_scheme_and_a_port() {
        assert_eq!(node_and_port("n"), Some(("n", "")));
        assert_eq!(node_and_port("n:10250"), Some(("n", "10250")));
        assert_eq!(node_and_port("https:n:"), Some(("n", "")));
        for wrong in ["", ":1", "ftp:n:1", "a:b:c:d"] {
            assert_eq!(node_and_port(wrong), None, "{wrong}");
        }
    }
}
