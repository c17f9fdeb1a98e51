//! The `proxy` subresource of nodes, pods and services: forwards any request to them, and the response, in which links
//! lead through the proxy.

mod html;
mod location;
mod target;

use http::header::{HOST, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use ringwatch_apimachinery::upgrade::is_upgrade;
use ringwatch_http::client::{Backend, BackendAnswer, exchange};
use ringwatch_http::{RequestBody, ResponseBody, full};
use serde_json::Map;

use self::location::{Links, ProxyPath};
use super::connect::admit_connection;
use super::kubelet_target::{request, upgrade};
use crate::call::Call;
use crate::errors::Failure;
use crate::forward::{FORWARDED_URI, strip, strip_answer};

/// The methods that can be proxied.
const METHODS: [Method; 7] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
];

/// Has the headers name the host that the client calls, as they do in HTTP/1.1. HTTP/2 has it in the URI.
pub(crate) fn name_host(uri: &Uri, headers: &mut HeaderMap) {
    let host = uri.authority().map(|it| HeaderValue::try_from(it.as_str()));
    if let Some(Ok(host)) = host {
        headers.entry(HOST).or_insert(host);
    }
}

/// Forwards the request to the node, pod or service that the path names, and the answer to the client.
///
/// # Errors
/// 400 for a name that names nothing or an address that may not be reached, 404 for what does not exist,
/// 503 when a service has no endpoints or nobody answers.
pub(crate) async fn proxy(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    if !METHODS.contains(call.method) {
        return Err(Failure::method_not_allowed());
    }
    let namespaced = call.store.resource().namespaced;
    let place = ProxyPath::parse(&call.info.path, namespaced);
    let options = Map::from_iter([("path".to_owned(), place.rest.into())]);
    admit_connection(call, options).await?;
    let backend = target::find(call).await?;
    let query = call.query.encode();
    let query = if query.is_empty() {
        query
    } else {
        format!("?{query}")
    };
    if is_upgrade(call.headers) {
        let mut request = request(call, &format!("{}{query}", place.path()), full(""))?;
        keep_host(call, request.headers_mut());
        return upgrade(&backend, request).await;
    }
    if place.rest.is_empty() && matches!(*call.method, Method::GET | Method::HEAD) {
        return redirect(&format!("{}/{query}", call.info.path));
    }
    forward(call, &backend, &place, &query, body).await
}

async fn forward(
    call: &Call<'_>,
    backend: &Backend,
    place: &ProxyPath<'_>,
    query: &str,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let mut request = request(call, &format!("{}{query}", place.path()), body)?;
    let headers = request.headers_mut();
    strip(headers);
    keep_host(call, headers);
    let uri = HeaderValue::try_from(&call.info.path).map_err(Failure::internal)?;
    headers.insert(FORWARDED_URI, uri);
    let mut answer = match exchange(backend, request).await {
        Ok(BackendAnswer::Answered(answer)) => answer,
        Ok(BackendAnswer::Switched(..)) => {
            return Err(unreachable("an upgrade that nobody asked for"));
        }
        Err(error) => return Err(unreachable(&error.to_string())),
    };
    strip_answer(answer.headers_mut());
    let host = call.headers.get(HOST).and_then(|it| it.to_str().ok());
    let links = Links {
        prefix: place.prefix.to_owned(),
        authority: backend.authority(),
        host: host.unwrap_or_default().to_owned(),
    };
    if answer.headers().contains_key(LOCATION) {
        relocate(answer.headers_mut(), &links);
        return Ok(answer);
    }
    Ok(html::rewrite(answer, call.method, links))
}

/// Rewrites the Location of a redirection that stays within what is proxied, so that the client stays behind the proxy.
fn relocate(headers: &mut HeaderMap, links: &Links) {
    let location = headers.get(LOCATION).and_then(|it| it.to_str().ok());
    let location = location.and_then(|it| links.through_the_proxy(it));
    if let Some(location) = location.and_then(|it| HeaderValue::try_from(it).ok()) {
        headers.insert(LOCATION, location);
    }
}

/// Names the host to the backend as the client does, which may have several.
fn keep_host(call: &Call<'_>, headers: &mut HeaderMap) {
    if let Some(host) = call.headers.get(HOST) {
        headers.insert(HOST, host.clone());
    }
}

fn unreachable(why: &str) -> Failure {
    Failure::service_unavailable(format!("error trying to reach service: {why}"))
}

/// Redirects to the path with a slash at its end, which relative links of a first page need.
fn redirect(location: &str) -> Result<Response<ResponseBody>, Failure> {
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let location = HeaderValue::try_from(location).map_err(Failure::internal)?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}
