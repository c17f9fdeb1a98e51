//! Proxies a request to the server of an aggregated API.
//!
//! Errors are lines of text, as kube-apiserver's aggregator writes them.

use http::header::{LOCATION, VIA};
use http::{HeaderMap, HeaderValue, Method, Response};
use ringwatch::clock::Clock;
use ringwatch_apimachinery::User;
use ringwatch_apimachinery::upgrade::is_upgrade;
use ringwatch_http::{RequestBody, ResponseBody, full};

use super::identity::set_identity;
use super::{AggregatedServer, AggregatedServers};
use crate::errors::{self, TextError};
use crate::forward::{FORWARDED_URI, forward, forwarded, upgrade};
use crate::respond::respond;

/// The message about a server that redirects: authorization would not apply to the other address.
const REDIRECTED: &str = "the backend attempted to redirect this request, which is not permitted";

/// The head of a request to be proxied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHead<'a> {
    /// The method of the client's request.
    pub(crate) method: &'a Method,
    /// The path and query as the client wrote them.
    pub(crate) path_and_query: &'a str,
    /// The headers of the client's request; hop-by-hop ones are not passed on.
    pub(crate) headers: &'a HeaderMap,
    /// Bounds connecting to the other server.
    pub(crate) clock: &'a Clock,
}

/// Proxies a request.
pub(crate) async fn proxy(
    servers: &AggregatedServers,
    server: &AggregatedServer,
    head: RequestHead<'_>,
    body: RequestBody,
    user: &User,
) -> Response<ResponseBody> {
    if !server.api.available {
        return unavailable("service unavailable");
    }
    let tls = match &server.tls {
        Ok(tls) => tls,
        Err(why) => return TextError::Internal(why).response(),
    };
    // A proxy loop would end only at a timeout.
    let via = format!("1.1 {}", servers.via);
    if head.headers.get_all(VIA).iter().any(|it| *it == via) {
        return unavailable("error trying to reach service: the request came from this server");
    }
    let Some((host, port)) = servers.place(server).await else {
        return unavailable("service unavailable");
    };
    let backend = server.backend(host, port, tls.clone(), head.clock);
    let request = forwarded(head.method, head.headers, head.path_and_query, body);
    let mut request = match request {
        Ok(request) => request,
        Err(error) => return unavailable(&error.status().message),
    };
    set_identity(request.headers_mut(), user);
    request
        .headers_mut()
        .extend(HeaderValue::try_from(via).map(|via| (VIA, via)));
    if is_upgrade(head.headers) {
        let upgraded = upgrade(&backend, request).await;
        return upgraded.unwrap_or_else(|error| unavailable(&error.to_string()));
    }
    let path = HeaderValue::try_from(request.uri().path());
    let path = path.map(|path| (FORWARDED_URI, path));
    request.headers_mut().extend(path);
    let answer = match forward(&backend, request).await {
        Ok(answer) => answer,
        Err(error) => return unreachable(&error.to_string()),
    };
    let redirects = answer.status().is_redirection() && answer.headers().contains_key(LOCATION);
    if redirects && !servers.passes_redirects {
        let text = "text/plain; charset=utf-8";
        return respond(errors::REDIRECTED, text, full(REDIRECTED));
    }
    answer
}

fn unavailable(why: &str) -> Response<ResponseBody> {
    TextError::Unavailable(why).response()
}

fn unreachable(why: &str) -> Response<ResponseBody> {
    unavailable(&format!("error trying to reach service: {why}"))
}

impl AggregatedServers {
    /// Returns the host and port of one endpoint of the API's service; `None` if it has none.
    async fn place(&self, server: &AggregatedServer) -> Option<(String, u16)> {
        let service = &server.api.service;
        let addresses = self.services.as_ref()?;
        let place = addresses.address(&service.namespace, &service.name, service.port);
        match place.await {
            Ok(place) => Some(place),
            Err(error) => {
                let api = &server.api.name;
                tracing::warn!(error, api, "cannot find the service of an APIService");
                None
            }
        }
    }
}
