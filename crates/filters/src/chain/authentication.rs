//! The user of a request: `WithAuthentication`.

use std::net::SocketAddr;

use http::header::AUTHORIZATION;
use ringwatch_authentication::is_anonymous;
use ringwatch_endpoints::{Credentials, Refusal};

use super::audit;
use super::time_limit::left;
use crate::next::{Next, ResponseFuture};
use crate::request_state::{Authentication, RequestState};
use crate::settings::Filters;

/// Authenticates a request within its time limit, or refuses it with 401. Watches and streams, which have none, are
/// authenticated within the limit of other requests.
pub(super) fn authentication<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    Box::pin(async move {
        let (since, now) = state.began;
        let end = state
            .deadline
            .unwrap_or(since + filters.limits.request_timeout);
        let from = state.client.address.as_ref().map(SocketAddr::ip);
        let peer = state.client.peer;
        let headers = state.request.headers_mut();
        // Certificates come first, and a token beside one has not been looked at.
        let is_proof = peer.user.is_none() && !peer.is_front_proxy_at(now);
        let authorization = headers.get(AUTHORIZATION).filter(|_| is_proof).cloned();
        let path = &state.info.path;
        let authenticated = filters
            .authenticator
            .authenticate(peer, from, headers, path, now);
        let left = left(end, &filters.clock);
        let user = match filters.clock.timeout(left, authenticated).await {
            Ok(Some(user)) => user,
            Ok(None) => {
                state.judge(Authentication::Refused);
                return audit::refuse(filters, state, &Refusal::Unauthenticated).await;
            }
            Err(_) => return audit::refuse(filters, state, &Refusal::DeadlineExceeded).await,
        };
        state.judge(Authentication::User(&user));
        if filters.api.takes_credentials() && (authorization.is_some() || is_anonymous(&user)) {
            state.credentials = Some(Credentials(authorization));
        }
        state.user = user;
        next.run(filters, state).await
    })
}
