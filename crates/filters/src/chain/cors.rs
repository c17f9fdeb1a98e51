//! The pages of other origins: `WithCORS`.

use http::Method;
use ringwatch_endpoints::preflight;

use crate::allowed_origin::allowed_origin;
use crate::next::{Next, ResponseFuture, ready};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Lets the pages of an allowed origin read the answer, and answers a browser that only asks for the headers of that.
pub(super) fn cors<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let origin = allowed_origin(&filters.outer.origins, state.request.headers());
    let is_preflight = origin.is_some() && state.method == Method::OPTIONS;
    state.response_headers.origin = origin;
    if is_preflight {
        return ready(preflight());
    }
    next.run(filters, state)
}
