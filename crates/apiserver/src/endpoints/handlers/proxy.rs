//! The `proxy` subresource of nodes, pods and services: relays any request to them, and the response as it is.

mod location;
mod target;

use http::header::{HeaderName, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use ringwatch_apimachinery::upgrade::is_upgrade;

use serde_json::Map;

use self::location::{Place, relocate};
use super::connect::admit_connection;
use super::relaying::{request, upgrade};
use crate::endpoints::body::{RequestBody, ResponseBody, full};
use crate::endpoints::call::Call;
use crate::endpoints::errors::Failure;
use crate::endpoints::relay::{Backend, Relayed, exchange, strip, strip_answer};

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

/// The header with the path by which the client reaches the backend.
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Relays the request to the node, pod or service that the path names, and the answer to the client.
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
    let place = Place::parse(&call.info.path, namespaced);
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
        return upgrade(call, &backend, &format!("{}{query}", place.path())).await;
    }
    if place.rest.is_empty() && matches!(*call.method, Method::GET | Method::HEAD) {
        return redirect(&format!("{}/{query}", call.info.path));
    }
    pass_on(call, &backend, &place, &query, body).await
}

async fn pass_on(
    call: &Call<'_>,
    backend: &Backend,
    place: &Place<'_>,
    query: &str,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let mut request = request(call, &format!("{}{query}", place.path()), body)?;
    let headers = request.headers_mut();
    strip(headers);
    let uri = HeaderValue::try_from(&call.info.path).map_err(Failure::internal)?;
    headers.insert(FORWARDED_URI, uri);
    let mut answer = match exchange(backend, request).await {
        Ok(Relayed::Answered(answer)) => answer,
        Ok(Relayed::Switched(..)) => return Err(unreachable("an upgrade that nobody asked for")),
        Err(error) => return Err(unreachable(&error.to_string())),
    };
    let headers = answer.headers_mut();
    strip_answer(headers);
    relocate_answer(headers, place, &backend.authority());
    Ok(answer)
}

/// Rewrites the Location of a redirection that stays within what is proxied, so that the client stays behind the proxy.
fn relocate_answer(headers: &mut HeaderMap, place: &Place<'_>, authority: &str) {
    let location = headers.get(LOCATION).and_then(|it| it.to_str().ok());
    let location = location.and_then(|it| relocate(it, place.prefix, authority));
    if let Some(location) = location.and_then(|it| HeaderValue::try_from(it).ok()) {
        headers.insert(LOCATION, location);
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
