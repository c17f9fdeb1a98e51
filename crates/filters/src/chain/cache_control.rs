//! The header Cache-Control: `WithCacheControl`.

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Forbids caches to keep the answer, unless its handler says otherwise.
pub(super) fn cache_control<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    state.response_headers.forbids_caching = true;
    next.run(filters, state)
}
