//! Rewrites the headers of forwarded requests and of their responses.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request};
use ringwatch_http::RequestBody;

use crate::errors::Failure;
use crate::impersonation;

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
pub(crate) fn forwarded(
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

/// Removes hop-by-hop headers. A length beside a transfer encoding is removed with it, as RFC 9112, 6.3 says: the body
/// is as long as its chunks are, and the length may be wrong. Of equal lengths one is left.
pub(crate) fn strip(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    // Lengths that differ have been refused.
    let lengths = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let length = lengths.and_then(|it| it.split(',').next());
    if let Some(length) = length.and_then(|it| it.trim().parse::<u64>().ok()) {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Removes the headers that tell how long a body is from the head of a switch of protocols, which has none.
pub(crate) fn strip_switched(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
    headers.remove(TRANSFER_ENCODING);
}

/// Removes hop-by-hop headers but for the protocol to which the client wants to switch. A proxy on the way would remove
/// whatever else the client's `Connection` names, such as headers that name the user.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(headers: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::try_from(*name).expect("a name");
            map.append(name, HeaderValue::try_from(*value).expect("a value"));
        }
        strip_answer(&mut map);
        let text = |value: &HeaderValue| value.to_str().expect("text").to_owned();
        let left = map
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)));
        left.collect()
    }

    #[test]
    fn a_message_in_chunks_has_no_length() {
        for headers in [
            [("content-length", "100"), ("transfer-encoding", "chunked")],
            [("transfer-encoding", "chunked"), ("content-length", "1")],
        ] {
            assert_eq!(stripped(&headers), []);
        }
    }

    #[test]
    fn a_message_has_one_length() {
        let expected = [("content-length".to_owned(), "5".to_owned())];
        for headers in [
            &[("content-length", "5")][..],
            &[("content-length", "5"), ("content-length", "5")],
            &[("content-length", "5, 5")],
        ] {
            assert_eq!(stripped(headers), expected);
        }
    }
}
