//! Requests and their answers.

use bytes::Bytes;
use http::{Method, StatusCode};

use super::status::Failure;
use super::{ClientError, Encoding};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    pub(super) content: Option<Content>,
    pub(super) accept: Encoding,
}

/// A body and its media type.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Content {
    /// A document in JSON.
    pub(crate) fn json(document: &serde_json::Value) -> Self {
        Self {
            media_type: Encoding::Json.media_type(),
            bytes: document.to_string().into(),
        }
    }
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), None)
    }

    pub(crate) fn post(path: impl Into<String>, content: Content) -> Self {
        Self::new(Method::POST, path.into(), Some(content))
    }

    pub(crate) fn put(path: impl Into<String>, content: Content) -> Self {
        Self::new(Method::PUT, path.into(), Some(content))
    }

    /// With a merge patch, if the content says so.
    pub(crate) fn patch(path: impl Into<String>, content: Content) -> Self {
        Self::new(Method::PATCH, path.into(), Some(content))
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path.into(), None)
    }

    fn new(method: Method, path: String, content: Option<Content>) -> Self {
        Self {
            method,
            path,
            content,
            accept: Encoding::Json,
        }
    }

    /// The same with a body.
    #[must_use]
    pub(crate) fn with(mut self, content: Content) -> Self {
        self.content = Some(content);
        self
    }

    /// Asks for an answer in this form; else it is JSON.
    #[must_use]
    pub(crate) fn accepting(mut self, encoding: Encoding) -> Self {
        self.accept = encoding;
        self
    }
}

impl Response {
    /// The body of a success; any other status is an error.
    pub(crate) fn success(self) -> Result<Bytes, ClientError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        Err(Failure::read(&self.body).into_error(self.status.as_u16()))
    }
}
