//! Requests that come before all resources and roles are loaded. kube-apiserver has no such filter: it loads them
//! before it listens.

use ringwatch_http::Body;

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Has a request of the API wait for the start, or refuses it with 503 after too long.
pub(super) fn start<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    if !filters.start.delays(&state.info.path) {
        return next.run(filters, state);
    }
    Box::pin(async move {
        match filters.start.wait(&filters.clock).await {
            Some(not_yet) => not_yet.map(Body::from),
            None => next.run(filters, state).await,
        }
    })
}
