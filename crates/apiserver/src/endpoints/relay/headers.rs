//! Rewrites the headers of relayed requests and of their responses.

use http::header::{CONNECTION, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Request};

use crate::endpoints::body::RequestBody;
use crate::endpoints::errors::Failure;
use crate::endpoints::impersonation;

/// The header with the path by which the client reaches the backend.
pub(crate) const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Headers that concern one connection and are not forwarded.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// CORS headers of a backend, which are not forwarded since they are not about this server.
const CORS: [HeaderName; 5] = [
    HeaderName::from_static("access-control-allow-credentials"),
    HeaderName::from_static("access-control-allow-headers"),
    HeaderName::from_static("access-control-allow-methods"),
    HeaderName::from_static("access-control-allow-origin"),
    HeaderName::from_static("access-control-expose-headers"),
];

/// Returns a client's request as another server gets it. Authentication has taken the client's credentials out.
///
/// # Errors
/// 500 for a path that is none.
pub(crate) fn passed_on(
    method: &Method,
    headers: &HeaderMap,
    path_and_query: &str,
    body: RequestBody,
) -> Result<Request<RequestBody>, Failure> {
    let request = Request::builder().method(method).uri(path_and_query);
    let mut request = request.body(body).map_err(Failure::internal)?;
    request.headers_mut().clone_from(headers);
    request.headers_mut().remove(HOST);
    impersonation::strip(request.headers_mut());
    Ok(request)
}

/// Removes hop-by-hop headers.
pub(crate) fn strip(headers: &mut HeaderMap) {
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Removes hop-by-hop headers but for the protocol to which the client wants to switch. A proxy on the way would remove whatever
/// else the client's `Connection` names, such as headers that name the user.
pub(crate) fn strip_for_upgrade(headers: &mut HeaderMap) {
    let protocol = headers.get(UPGRADE).cloned();
    strip(headers);
    headers.extend(protocol.map(|protocol| (UPGRADE, protocol)));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
}

/// Removes the headers of a backend's response that are not forwarded: hop-by-hop and CORS headers.
pub(crate) fn strip_answer(headers: &mut HeaderMap) {
    strip(headers);
    for name in &CORS {
        headers.remove(name);
    }
}
