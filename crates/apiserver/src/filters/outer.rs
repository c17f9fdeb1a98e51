//! The outermost filters, which look at nothing but the head of a request: browsers, HTTP/2 connections that are to end,
//! and the end of the server.

use http::header::{CONNECTION, STRICT_TRANSPORT_SECURITY};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use ringwatch_http::ResponseBody;

use super::cors::{AllowedOrigin, allow, allowed_origin};
use super::drain::Drain;
use super::goaway::GoawayChance;
use crate::endpoints::{TextError, preflight};

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The settings of the outermost filters.
#[derive(Clone, Debug, Default)]
pub struct Outer {
    /// The origins whose pages may read answers.
    pub origins: Vec<AllowedOrigin>,
    /// The header Strict-Transport-Security of all responses.
    pub transport_security: Option<HeaderValue>,
    /// The chance that a request ends its HTTP/2 connection.
    pub goaway: GoawayChance,
    /// The end of serving.
    pub drain: Drain,
}

/// The effects of the head of a request on its response.
#[derive(Debug)]
pub(super) struct Effects {
    /// The origin whose pages may read the answer.
    origin: Option<HeaderValue>,
    /// True if a browser only asks for the headers of that.
    is_preflight: bool,
    transport_security: Option<HeaderValue>,
    /// True if the connection is to end.
    closes: bool,
}

impl Outer {
    /// Returns the response to a request that is turned away, since the server ends. Its connection is to be closed.
    pub(super) fn turned_away<B>(&self, request: &Request<B>) -> Option<Response<ResponseBody>> {
        if !self.drain.turns_away(request.uri(), request.headers()) {
            return None;
        }
        let mut response = TextError::Ending.response();
        response.headers_mut().insert(CONNECTION, CLOSE);
        Some(response)
    }

    /// Returns the effects of a request.
    pub(super) fn effects<B>(&self, request: &Request<B>) -> Effects {
        let origin = allowed_origin(&self.origins, request.headers());
        Effects {
            is_preflight: origin.is_some() && request.method() == Method::OPTIONS,
            origin,
            transport_security: self.transport_security.clone(),
            closes: self.goaway.hits(request.version(), rand::random),
        }
    }
}

impl Effects {
    /// Returns the response, if a browser only asks for its headers.
    pub(super) fn preflight(&self) -> Option<Response<ResponseBody>> {
        self.is_preflight.then(preflight)
    }

    /// Adds the headers to the response. `Connection: close` on HTTP/2 has the connection send GOAWAY.
    pub(super) fn apply(self, headers: &mut HeaderMap) {
        if let Some(origin) = self.origin {
            allow(origin, headers);
        }
        if let Some(transport_security) = self.transport_security {
            headers.insert(STRICT_TRANSPORT_SECURITY, transport_security);
        }
        if self.closes {
            headers.insert(CONNECTION, CLOSE);
        }
    }
}
