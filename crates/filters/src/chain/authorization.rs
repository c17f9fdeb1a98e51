//! The permission to make a request: `WithAuthorization`.

use std::sync::Arc;

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Has a request authorized, unless its handler leaves that to another server. That is done where it is handled
/// ([`endpoint`](crate::endpoint)), since both may move to the threads for large work.
pub(super) fn authorization<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    if filters.api.needs_authorization(&state.info, &state.user) {
        state.authorizer = Some(Arc::clone(&filters.authorizer));
    }
    next.run(filters, state)
}
