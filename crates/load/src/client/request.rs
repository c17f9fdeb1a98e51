//! Requests to the server, and their answers.

use bytes::Bytes;
use http::{Method, StatusCode};

use super::status::StatusFailure;
use super::{ClientError, Encoding};

/// A request to the server: method, path and query, body, and the accepted encoding.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequest {
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    pub(super) content: Option<RequestContent>,
    pub(super) accept: Encoding,
}

/// A body and its media type.
#[derive(Clone, Debug)]
pub(crate) struct RequestContent {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
}

/// An answer to a request, read to its end.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl RequestContent {
    /// Returns a document in JSON as a body.
    pub(crate) fn json(document: &serde_json::Value) -> Self {
        Self {
            media_type: Encoding::Json.media_type(),
            bytes: document.to_string().into(),
        }
    }
}

impl ClientRequest {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), None)
    }

    pub(crate) fn post(path: impl Into<String>, content: RequestContent) -> Self {
        Self::new(Method::POST, path.into(), Some(content))
    }

    pub(crate) fn put(path: impl Into<String>, content: RequestContent) -> Self {
        Self::new(Method::PUT, path.into(), Some(content))
    }

    /// Returns a PATCH request; the media type of the content says which kind of patch it is.
    pub(crate) fn patch(path: impl Into<String>, content: RequestContent) -> Self {
        Self::new(Method::PATCH, path.into(), Some(content))
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path.into(), None)
    }

    fn new(method: Method, path: String, content: Option<RequestContent>) -> Self {
        Self {
            method,
            path,
            content,
            accept: Encoding::Json,
        }
    }

    /// Returns the request with this body.
    #[must_use]
    pub(crate) fn with(mut self, content: RequestContent) -> Self {
        self.content = Some(content);
        self
    }

    /// Returns the request that accepts this encoding; otherwise it accepts JSON.
    #[must_use]
    pub(crate) fn accepting(mut self, encoding: Encoding) -> Self {
        self.accept = encoding;
        self
    }
}

impl Response {
    /// Returns the body of a success.
    pub(crate) fn success(self) -> Result<Bytes, ClientError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        Err(StatusFailure::read(&self.body).into_error(self.status.as_u16()))
    }
}
