//! Responses of the filters, and of the paths outside the API, to requests that they refuse.

use http::header::{RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use ringwatch::meta::{Status, StatusDetails};
use ringwatch_http::{ResponseBody, full};

use crate::respond::respond;

/// Retry-After of responses to too many requests, and to watches that a server at its end begins no more: another try
/// reaches another server. In seconds.
const TOO_MANY_RETRY_AFTER_SECONDS: u32 = 1;

/// Retry-After before the API is complete, in seconds.
const STARTING_RETRY_AFTER_SECONDS: u32 = 5;

/// Retry-After of requests that a draining server refuses, in seconds, as `WithRetryAfter` of kube-apiserver has it.
const DRAINING_RETRY_AFTER_SECONDS: u32 = 5;

/// A request that is refused with a `Status` before the API is asked.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The client has no valid credentials.
    #[error("Unauthorized")]
    Unauthenticated,
    /// The `timeout` parameter is not a duration.
    #[error("{0}")]
    InvalidTimeout(String),
    /// The headers have parts of an identity to impersonate, as printed here, and no user.
    #[error("requested {0} without impersonating a user name")]
    NobodyImpersonated(String),
    /// The request took longer than it may.
    #[error("Timeout: request did not complete within the allotted timeout")]
    DeadlineExceeded,
    /// The server has not installed all of the API yet.
    #[error(
        "the request has been made before all known HTTP paths have been installed, please try again"
    )]
    Starting,
    /// The server is about to end, and begins no watch any more.
    #[error("apiserver is shutting down")]
    Ending,
}

impl Refusal {
    /// Returns the HTTP status.
    pub fn code(&self) -> StatusCode {
        match self {
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::InvalidTimeout(_) | Self::NobodyImpersonated(_) => StatusCode::BAD_REQUEST,
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::Starting | Self::Ending => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the Status that the client gets.
    pub fn status(&self) -> Status {
        let reason = match self {
            Self::Unauthenticated => "Unauthorized",
            Self::InvalidTimeout(_) | Self::NobodyImpersonated(_) => "BadRequest",
            Self::DeadlineExceeded => "Timeout",
            Self::Starting | Self::Ending => "ServiceUnavailable",
        };
        let status = Status::failure(self.code().as_u16(), reason, self.to_string());
        match self {
            Self::Unauthenticated
            | Self::InvalidTimeout(_)
            | Self::NobodyImpersonated(_)
            | Self::Ending => status,
            Self::DeadlineExceeded => status.with_details(StatusDetails::default()),
            Self::Starting => status.with_details(StatusDetails {
                retry_after_seconds: self.retry_after_seconds(),
                ..StatusDetails::default()
            }),
        }
    }

    /// Returns the retry delay in seconds, if the refusal has one.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        match self {
            Self::Starting => Some(STARTING_RETRY_AFTER_SECONDS),
            Self::Ending => Some(TOO_MANY_RETRY_AFTER_SECONDS),
            Self::Unauthenticated
            | Self::InvalidTimeout(_)
            | Self::NobodyImpersonated(_)
            | Self::DeadlineExceeded => None,
        }
    }
}

/// An error that is sent as a line of text, as Go's `http.Error` sends it.
#[derive(Debug, thiserror::Error)]
pub enum TextError<'a> {
    /// Too many requests are in progress.
    #[error("Too many requests, please try again later.")]
    TooManyRequests,
    /// The server is about to end.
    #[error("The apiserver is shutting down, please try again later.")]
    Ending,
    /// An internal error.
    #[error("This request caused apiserver to panic. Look in the logs for details.")]
    Panicked,
    /// The server failed, as the message says.
    #[error("{0}")]
    Internal(&'a str),
    /// There is nothing at the path.
    #[error("404 page not found")]
    PageNotFound,
    /// The server of an aggregated API cannot be reached, as the message says.
    #[error("{0}")]
    Unavailable(&'a str),
    /// The request is wrong, as the message says.
    #[error("{0}")]
    Wrong(&'a str),
    /// The path is known, and has nothing here, as the message says.
    #[error("{0}")]
    NotHere(&'a str),
    /// The path is not read but written, with PUT.
    #[error("unsupported http method")]
    WrittenAlone,
}

impl TextError<'_> {
    fn code(&self) -> StatusCode {
        match self {
            Self::TooManyRequests | Self::Ending => StatusCode::TOO_MANY_REQUESTS,
            Self::Panicked | Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::PageNotFound | Self::NotHere(_) => StatusCode::NOT_FOUND,
            Self::Wrong(_) => StatusCode::BAD_REQUEST,
            Self::WrittenAlone => StatusCode::NOT_ACCEPTABLE,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the response that the client gets.
    #[must_use]
    pub fn response(&self) -> Response<ResponseBody> {
        let mut response = error_text(self.code(), &self.to_string());
        let seconds = match self {
            Self::TooManyRequests => TOO_MANY_RETRY_AFTER_SECONDS,
            Self::Ending => DRAINING_RETRY_AFTER_SECONDS,
            _ => return response,
        };
        let after = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, after);
        response
    }
}

/// The status of an answer that is a redirection which this server must not pass on.
pub(crate) const REDIRECTED: StatusCode = StatusCode::BAD_GATEWAY;

/// Returns the response to a browser that asks which requests a page may make: headers alone.
pub fn preflight() -> Response<ResponseBody> {
    let mut response = Response::new(full(Vec::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The status of a response with an empty body to a client that accepts no representation of a document.
pub const NOT_ACCEPTABLE: StatusCode = StatusCode::NOT_ACCEPTABLE;

/// The status of a response to a client that wants no answer but to a read where it has the document already.
pub(crate) const PRECONDITION_FAILED: StatusCode = StatusCode::PRECONDITION_FAILED;

/// Returns an error as a line of text, as Go's `http.Error` writes it.
fn error_text(code: StatusCode, text: &str) -> Response<ResponseBody> {
    let body = full(format!("{text}\n"));
    let mut response = respond(code, "text/plain; charset=utf-8", body);
    let no_sniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, no_sniff);
    response
}
