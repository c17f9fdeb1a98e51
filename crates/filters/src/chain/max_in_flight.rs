//! The places of requests in flight, and those of each user's watches: `WithMaxInFlightLimit`.

use ringwatch_endpoints::RequestVerb;
use ringwatch_flowcontrol::fairness::TooMany;
use ringwatch_registry::Verb;

use crate::answer;
use crate::next::{Next, ResponseFuture, ready};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Takes a place for a request or a watch, or refuses it with 429. With priority and fairness, requests in flight are
/// only counted.
pub(super) fn max_in_flight<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let (limits, info) = (&filters.limits, &state.info);
    let entered = if info.verb == RequestVerb::Resource(Verb::Watch) {
        let entered = limits.watches.enter(&state.user);
        entered.map(|place| state.counted_watch = place)
    } else if info.is_long_running() {
        Ok(())
    } else {
        let now = filters.clock.now();
        state.permit = limits.in_flight.enter(info.is_mutating(), &state.user, now);
        state.permit.as_ref().map(|_| ()).ok_or(TooMany)
    };
    match entered {
        Ok(()) => next.run(filters, state),
        Err(TooMany) => ready(answer::too_many(&limits.metrics, info)),
    }
}
