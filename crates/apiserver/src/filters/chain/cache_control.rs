//! The header Cache-Control: `WithCacheControl`.

use crate::filters::next::{Next, ResponseFuture};
use crate::filters::request_state::RequestState;
use crate::filters::settings::Filters;

/// Forbids caches to keep the answer, unless its handler says otherwise.
pub(super) fn cache_control<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    state.response_headers.forbids_caching = true;
    next.run(filters, state)
}
