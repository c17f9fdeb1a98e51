//! The head of an HTTP/1.1 request: what it asks of its connection, and checks that hyper does not make. Without these,
//! two servers on the way of a request could take it for different ones.
//!
//! The checks follow `readRequest` of Go's `net/http`, and its `parseTransferEncoding`: the only encoding of a transfer
//! is `chunked`, once.

use http::header::{CONNECTION, EXPECT, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Version};

use super::head_refusal::HeadError;

/// Returns true if a watch that answers the request may be written in chunks, and at once.
pub(super) fn takes_chunks<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && !request.headers().contains_key(EXPECT)
}

/// Returns true if the client asks for the connection to be closed after the answer.
pub(super) fn is_last<B>(request: &Request<B>) -> bool {
    let options = request.headers().get_all(CONNECTION).into_iter();
    let options = options.filter_map(|value| value.to_str().ok());
    let mut options = options.flat_map(|value| value.split(','));
    options.any(|option| option.trim().eq_ignore_ascii_case("close"))
}

/// Checks the head of a request.
///
/// # Errors
/// 400 or 501, after which the connection is to be closed.
pub(super) fn check_head<B>(request: &Request<B>) -> Result<(), HeadError> {
    // HTTP/1.0 needs no host, and a body there is never in chunks. HTTP/2 has no such headers.
    if request.version() != Version::HTTP_11 {
        return Ok(());
    }
    check_transfer_encoding(request.headers())?;
    check_host(request)
}

fn check_transfer_encoding(headers: &HeaderMap) -> Result<(), HeadError> {
    let mut encodings = headers.get_all(TRANSFER_ENCODING).into_iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(HeadError::TransferEncoding),
    }
}

fn check_host<B>(request: &Request<B>) -> Result<(), HeadError> {
    let mut hosts = request.headers().get_all(HOST).into_iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.method() == Method::CONNECT => Ok(()),
        (None, _) => Err(HeadError::Malformed(": missing required Host header")),
        (Some(_), Some(_)) => Err(HeadError::Malformed("")),
        (Some(host), None) if host.as_bytes().iter().all(|it| is_of_host(*it)) => Ok(()),
        (Some(_), None) => Err(HeadError::Malformed(": malformed Host header")),
    }
}

/// Returns true for the bytes that a host has, as in `httpguts.ValidHostHeader`.
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$%&()*+,-.:;='[]_~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(version: Version, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::get("/").version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let checked = check_head(&request.body(()).expect("a request"));
        checked.map_or_else(|error| error.response().status().as_u16(), |()| 200)
    }

    #[test]
    fn a_request_has_one_host_that_can_be_one() {
        for (headers, expected) in [
            (&[("host", "localhost:6443")][..], 200),
            (&[("host", "[::1]:6443")], 200),
            (&[("host", "")], 200),
            (&[], 400),
            (&[("host", "a"), ("host", "a")], 400),
            (&[("host", "a b")], 400),
            (&[("host", "a/b")], 400),
        ] {
            assert_eq!(code(Version::HTTP_11, headers), expected, "{headers:?}");
        }
        assert_eq!(code(Version::HTTP_10, &[]), 200);
        assert_eq!(code(Version::HTTP_2, &[]), 200);
    }

    #[test]
    fn a_body_comes_in_chunks_or_whole() {
        let host = ("host", "a");
        for (encodings, expected) in [
            (&["chunked"][..], 200),
            (&["Chunked"], 200),
            (&["gzip, chunked"], 501),
            (&["chunked, chunked"], 501),
            (&["chunked", "chunked"], 501),
            (&["identity"], 501),
            (&[""], 501),
        ] {
            let encodings = encodings.iter().map(|it| ("transfer-encoding", *it));
            let headers: Vec<_> = std::iter::once(host).chain(encodings).collect();
            assert_eq!(code(Version::HTTP_11, &headers), expected, "{headers:?}");
        }
    }
}
