//! The chain of filters that every request passes before the API.
//!
//! Its order is that of `DefaultBuildHandlerChain` of Kubernetes 1.36 (`apiserver/pkg/server/config.go`), outermost
//! first.

mod audit;
mod audit_init;
mod audited_body;
mod authentication;
mod authorization;
mod body_guards;
mod cache_control;
mod cors;
mod goaway;
mod hsts;
mod impersonation;
mod max_in_flight;
mod panic_recovery;
mod priority_and_fairness;
mod request_deadline;
mod request_info;
mod retry_after;
mod running_requests;
mod start;
mod time_limit;
mod traced;
mod wait_group;
mod watch_termination;

use http::{Request, Response};
use ringwatch_http::{Body, RequestBody};

use super::next::{Filter, Next};
use super::request_state::{Authentication, ClientSide, OnAuthentication, RequestState};
use super::settings::Filters;

/// The filters in the order in which a request passes them. Those whose names begin with `With` are kube-apiserver's.
const CHAIN: [Filter; 21] = [
    Filter::new("WithAuditInit", audit_init::audit_init),
    Filter::new("WithPanicRecovery", panic_recovery::panic_recovery),
    Filter::new("WithRequestInfo", request_info::request_info),
    Filter::new("WithRetryAfter", retry_after::retry_after),
    Filter::new("WithHSTS", hsts::hsts),
    Filter::new("WithCacheControl", cache_control::cache_control),
    Filter::new("WithProbabilisticGoaway", goaway::goaway),
    Filter::new(
        "WithWatchTerminationDuringShutdown",
        watch_termination::watch_termination,
    ),
    Filter::new("WithWaitGroup", wait_group::wait_group),
    Filter::new("WithRequestDeadline", request_deadline::request_deadline),
    Filter::new("WithCORS", cors::cors),
    Filter::new("WithAuthentication", authentication::authentication),
    Filter::new("WithTracing", traced::traced),
    Filter::new("start", start::start),
    Filter::new("WithAudit", audit::audit),
    Filter::new("time limit", time_limit::time_limit),
    Filter::new("WithConstrainedImpersonation", impersonation::impersonation),
    Filter::new("running requests", running_requests::running_requests),
    Filter::new(
        "WithPriorityAndFairness",
        priority_and_fairness::priority_and_fairness,
    ),
    Filter::new("WithMaxInFlightLimit", max_in_flight::max_in_flight),
    Filter::new("WithAuthorization", authorization::authorization),
];

impl Filters {
    /// Answers a request of a client. Errors become responses. `on_authentication` is called once.
    pub async fn answer(
        &self,
        request: Request<RequestBody>,
        client: ClientSide<'_>,
        on_authentication: OnAuthentication<'_>,
    ) -> Response<Body> {
        let mut state = RequestState::new(request, client, on_authentication, &self.clock);
        let mut response = Next(&CHAIN).run(self, &mut state).await;
        state.judge(Authentication::Skipped);
        state.response_headers.apply(response.headers_mut());
        tracing::debug!(
            method = %state.method, path = state.uri.path(), code = response.status().as_u16(),
            microseconds = self.clock.now().duration_since(state.began.0).as_micros(), "request"
        );
        response
    }
}

#[cfg(test)]
mod tests;
