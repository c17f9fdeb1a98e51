//! HTTP/2 connections that end by chance: `WithProbabilisticGoaway`.

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Ends the connection of a request, by chance.
pub(super) fn goaway<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let version = state.request.version();
    state.response_headers.closes = filters.outer.goaway.hits(version, rand::random);
    next.run(filters, state)
}
