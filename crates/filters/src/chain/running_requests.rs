//! The requests that run, as the status page shows them, and what they hold until their bodies are sent. Ours alone.

use std::sync::Arc;

use super::body_guards::{guard_request, guard_watch};
use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Notes a request among those that run until its body is sent, with its seats and its place; of a watch or stream
/// notes how it began.
pub(super) fn running_requests<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    let everything = state.info.is_of_everything(state.query());
    let client = state.client_summary();
    let all = &filters.limits.running;
    if state.info.is_long_running() {
        return Box::pin(async move {
            let response = next.run(filters, &mut *state).await;
            let (code, now) = (response.status(), filters.clock.now());
            all.begun(&*state.info, everything, &client, code, now);
            let (open, place) = (state.open_watch.take(), state.counted_watch.take());
            response.map(|body| guard_watch(body, open, place, &filters.end_of_watches))
        });
    }
    let info = Arc::clone(&state.info) as _;
    let running = all.begin(info, everything, client, &filters.clock);
    Box::pin(async move {
        let response = next.run(filters, &mut *state).await;
        running.responded(response.status());
        match state.permit.take() {
            Some(permit) => {
                response.map(|body| guard_request(body, permit, state.turn.take(), running))
            }
            None => response,
        }
    })
}
