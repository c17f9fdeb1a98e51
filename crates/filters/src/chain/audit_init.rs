//! The audit id of a request, which its answer has too: `WithAuditInit`.

use ringwatch_endpoints::audit_id::{AUDIT_ID, audit_id};

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Gives the request the audit id of its client, or a new one. Whoever it is passed on to calls it the same.
pub(super) fn audit_init<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let headers = state.request.headers_mut();
    let id = audit_id(headers);
    headers.insert(AUDIT_ID, id.clone());
    state.response_headers.audit_id = Some(id);
    next.run(filters, state)
}
