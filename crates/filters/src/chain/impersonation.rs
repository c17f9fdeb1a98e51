//! Requests that are made as somebody else: `WithConstrainedImpersonation`.

use std::sync::Arc;

use ringwatch_endpoints::{self as endpoints, NotImpersonated, Refusal};
use ringwatch_flowcontrol::Requester;
use ringwatch_flowcontrol::fairness::TooMany;
use ringwatch_http::Body;

use crate::answer;
use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Decides whether the user may make a request as another one, who replaces that user.
pub(super) fn impersonation<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    if !endpoints::impersonates(state.request.headers()) {
        return next.run(filters, state);
    }
    Box::pin(async move {
        let from = filters.clock.now();
        let impersonation = Arc::clone(&filters.impersonation);
        let (user, info) = (state.user.clone(), Arc::clone(&state.info));
        let (uri, headers) = (state.uri.clone(), state.request.headers().clone());
        let step = async move {
            let query = uri.query().unwrap_or_default();
            impersonation
                .impersonated(&user, &info, query, &headers)
                .await
        };
        let requester = Requester::from(&state.user);
        let impersonated = filters
            .limits
            .large_work
            .run(Box::pin(step), &requester)
            .await;
        if let Some(recording) = &state.recording {
            let took = filters.clock.now().duration_since(from);
            recording.took("impersonation", took);
        }
        match impersonated {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(other))) => {
                if let Some(recording) = &state.recording {
                    recording.impersonated(&other.user, other.constraint);
                }
                state.user = other.user;
            }
            Ok(Err(NotImpersonated::Refused(refusal))) => return refusal.map(Body::from),
            Ok(Err(NotImpersonated::NoUser(identity))) => {
                let refusal = Refusal::NobodyImpersonated(identity);
                let headers = state.request.headers();
                let response = answer::refused_to(&refusal, headers, state.query());
                return response.map(Body::from);
            }
            Err(TooMany) => {
                return answer::too_many(&filters.limits.metrics, &state.info).map(Body::from);
            }
        }
        next.run(filters, state).await
    })
}
