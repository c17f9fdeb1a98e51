//! The head of a request, with what follows from it alone: its context, and the form of its errors.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderMap, Method, Response};
use ringwatch_apimachinery::User;
use ringwatch_audit::Recording;
use ringwatch_http::ResponseBody;
use ringwatch_registry::RequestContext;

use super::api_config::ApiConfig;
use super::call::Call;
use super::errors::Failure;
use super::negotiation::status_format;
use super::params::Query;
use super::request_info::RequestInfo;
use super::response;
use super::warnings::warning_headers;

/// The head of a request: everything but its body.
pub(super) struct RequestHead<'a> {
    pub(super) method: &'a Method,
    pub(super) info: &'a RequestInfo,
    pub(super) query: &'a Query,
    pub(super) headers: &'a HeaderMap,
    pub(super) pretty: bool,
    /// The address of the client, or of the last proxy before this server.
    pub(super) address: Option<SocketAddr>,
    /// The record of the request, if there is one.
    pub(super) recording: Option<&'a Arc<Recording>>,
}

impl RequestHead<'_> {
    /// Returns the context of the request for the registry.
    pub(super) fn context(&self, user: User, config: &ApiConfig) -> RequestContext {
        let mut context = Call::context(self.info, self.query, self.headers, user, config);
        context.recording = self.recording.cloned();
        context
    }

    /// Returns the response that tells why the request failed.
    pub(super) fn failure(&self, failure: &Failure) -> Response<ResponseBody> {
        response::failure(status_format(self.headers, self.pretty), failure)
    }

    /// Returns the response of a handler, with the warnings that it has given.
    pub(super) fn response(
        &self,
        answer: Result<Response<ResponseBody>, Failure>,
        context: &RequestContext,
    ) -> Response<ResponseBody> {
        let mut response = answer.unwrap_or_else(|failure| self.failure(&failure));
        warning_headers(&context.warnings(), response.headers_mut());
        response
    }
}
