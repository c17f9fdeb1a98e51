//! Requests to a server that ends: `WithRetryAfter`.

use http::header::CONNECTION;
use ringwatch_endpoints::TextError;

use crate::next::{Next, ResponseFuture, ready};
use crate::request_state::{CLOSE, RequestState};
use crate::settings::Filters;

/// Turns a request away with 429 if the server ends, and closes its connection.
pub(super) fn retry_after<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let drain = &filters.outer.drain;
    if !drain.turns_away(&state.uri, state.request.headers()) {
        return next.run(filters, state);
    }
    let mut response = TextError::Ending.response();
    response.headers_mut().insert(CONNECTION, CLOSE);
    ready(response)
}
