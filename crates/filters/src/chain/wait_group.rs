//! Requests that the end of the server waits for: `WithWaitGroup`.

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Counts a request in progress, watches and streams aside.
pub(super) fn wait_group<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    if !state.info.is_long_running() {
        let drain = &filters.outer.drain;
        state.in_progress = drain.request(&state.uri, state.request.headers());
    }
    next.run(filters, state)
}
