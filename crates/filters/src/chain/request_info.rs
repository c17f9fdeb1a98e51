//! The path and the verb of a request: `WithRequestInfo`.

use std::sync::Arc;

use ringwatch_endpoints::RequestInfo;

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Reads the path of a request.
pub(super) fn request_info<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let info = RequestInfo::new(&state.method, state.uri.path(), state.query());
    state.info = Arc::new(info);
    next.run(filters, state)
}
