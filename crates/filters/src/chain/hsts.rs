//! The header Strict-Transport-Security: `WithHSTS`.

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Sets the header of all responses, if the server has one.
pub(super) fn hsts<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let header = &filters.outer.transport_security;
    state.response_headers.transport_security.clone_from(header);
    next.run(filters, state)
}
