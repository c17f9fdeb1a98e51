//! The end of the time of a request.
//!
//! kube-apiserver ends it in `WithTimeoutForNonLongRunningRequests`, before authentication, where the handlers behind
//! it go on. Here they end too, so it stands within audit, which records it; authentication looks at the time itself.

use std::time::Duration;

use ringwatch::clock::{Clock, Instant};
use ringwatch_endpoints::{ProxiedResponse, Refusal};
use ringwatch_http::Body;

use crate::answer;
use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Answers a request with 504 that is not answered within its time. Bodies of other servers are cut off then.
pub(super) fn time_limit<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let Some(end) = state.deadline else {
        return next.run(filters, state);
    };
    Box::pin(async move {
        let clock = &filters.clock;
        let answered = clock.timeout(left(end, clock), next.run(filters, &mut *state));
        let Ok(answer) = answered.await else {
            let refusal = answer::refused(&Refusal::DeadlineExceeded);
            let code = refusal.status().as_u16();
            filters.limits.metrics.terminate(&state.info, code);
            return refusal.map(Body::from);
        };
        if answer.extensions().get::<ProxiedResponse>().is_none() {
            return answer;
        }
        answer.map(|body| body.within(left(end, clock), clock))
    })
}

/// Returns the time that is left until `end`.
pub(super) fn left(end: Instant, clock: &Clock) -> Duration {
    end - clock.now().min(end)
}
