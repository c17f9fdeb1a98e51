//! Watches of a server that ends: `WithWatchTerminationDuringShutdown`.

use ringwatch_endpoints::{Refusal, RequestVerb};
use ringwatch_registry::Verb;

use crate::answer;
use crate::drain::Draining;
use crate::next::{Next, ResponseFuture, ready};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Counts a watch among those that end one by one, and refuses it with 503 if they end already.
pub(super) fn watch_termination<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    if state.info.verb == RequestVerb::Resource(Verb::Watch) {
        match filters.outer.drain.watch() {
            Ok(open) => state.open_watch = open,
            Err(Draining) => return ready(answer::refused(&Refusal::Ending)),
        }
    }
    next.run(filters, state)
}
