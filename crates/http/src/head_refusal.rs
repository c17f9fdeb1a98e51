//! Answers to requests whose head the transport refuses itself, in the words of Go's server.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};

use super::body::{ResponseBody, full};

/// The response to a request head that is too large, as in Go.
const HEAD_TOO_LARGE: &[u8] = b"HTTP/1.1 431 Request Header Fields Too Large\r\n\
    Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    431 Request Header Fields Too Large";
/// The response to a request head for which there is no memory.
const NO_MEMORY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\n\
    Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    503 Service Unavailable: the server is short of memory, please try again later";
/// The response to a request head that took too long.
const HEAD_TOO_LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\n\
    Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    408 Request Timeout";

/// The response to a request target with a fragment, which no request has (RFC 9112, 3.2).
const FRAGMENT: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n\
    400 Bad Request: the request target has a fragment";

/// The reason why a connection ends before the head of a request has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadRefusal {
    /// A head was larger than such a client may send.
    TooLarge,
    /// There is no memory for a head.
    NoMemory,
    /// A head took too long.
    Late,
    /// A request target has a fragment.
    Fragment,
}

impl HeadRefusal {
    /// Returns the bytes that the client gets before its connection ends, as Go's server writes them.
    pub(super) fn answer(self) -> &'static [u8] {
        match self {
            Self::TooLarge => HEAD_TOO_LARGE,
            Self::NoMemory => NO_MEMORY,
            Self::Late => HEAD_TOO_LATE,
            Self::Fragment => FRAGMENT,
        }
    }
}

/// The error of a request whose head is complete and none of HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeadError {
    /// A header is missing, doubled or malformed, as the rest of the message says.
    #[error("400 Bad Request{0}")]
    Malformed(&'static str),
    /// The body of the request is encoded in a way that is not known.
    #[error("Unsupported transfer encoding")]
    TransferEncoding,
}

impl HeadError {
    /// Returns the answer that the client gets: a line of text, as Go's `http.Error` writes it.
    pub(super) fn response(self) -> Response<ResponseBody> {
        let mut response = Response::new(full(format!("{self}\n")));
        *response.status_mut() = match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TransferEncoding => StatusCode::NOT_IMPLEMENTED,
        };
        for (name, value) in [
            (CONTENT_TYPE, "text/plain; charset=utf-8"),
            (CACHE_CONTROL, "no-cache, private"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ] {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }
}
