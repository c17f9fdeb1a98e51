//! The seats of requests among all users: `WithPriorityAndFairness`.

use ringwatch_endpoints::{self as endpoints, RequestInfo, RequestVerb};
use ringwatch_flowcontrol::fairness::{TooMany, width};
use ringwatch_http::Body;
use ringwatch_registry::Verb;

use crate::answer;
use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Has a request wait for its seats, or refuses it with 429. Watches and streams take none. The response names the flow
/// schema and the priority level.
pub(super) fn priority_and_fairness<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let Some(fairness) = &filters.limits.fairness else {
        return next.run(filters, state);
    };
    let is_long_running = state.info.is_long_running();
    if is_long_running && state.info.verb != RequestVerb::Resource(Verb::Watch) {
        return next.run(filters, state);
    }
    Box::pin(async move {
        let attributes = state.info.attributes(&state.user);
        let classification = fairness.classify(&attributes);
        let turn = if is_long_running {
            Ok(None)
        } else {
            let from = filters.clock.now();
            let width = seats(filters, &state.info, state.query());
            let turn = fairness.turn(&attributes, width, &filters.clock).await;
            if let (Ok(_), Some(recording)) = (&turn, &state.recording) {
                let waited = filters.clock.now().duration_since(from);
                recording.took("apf-queue-wait", waited);
            }
            turn
        };
        let mut response = match turn {
            Ok(turn) => {
                state.turn = turn;
                next.run(filters, state).await
            }
            Err(TooMany) => answer::too_many(&filters.limits.metrics, &state.info).map(Body::from),
        };
        if let Some(classification) = classification {
            classification.add_headers(response.headers_mut());
        }
        response
    })
}

/// Returns the number of seats that a request takes: one, or more for a list of many objects.
fn seats(filters: &Filters, info: &RequestInfo, query: &str) -> u32 {
    if info.verb != RequestVerb::Resource(Verb::List) {
        return 1;
    }
    let now = filters.clock.now();
    let size = filters.limits.sizes.size(&info.group, &info.resource, now);
    width(size, objects_max(info, query))
}

/// Returns how many objects a list can show at most.
fn objects_max(info: &RequestInfo, query: &str) -> u64 {
    if endpoints::selected_name(info, query).is_some() {
        return 1;
    }
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    let limit = parameters.find(|(name, _)| name == "limit");
    let limit = limit.and_then(|(_, limit)| limit.parse().ok());
    limit.filter(|limit| *limit > 0).unwrap_or(u64::MAX)
}
