//! Requests that panic, which end alone: `WithPanicRecovery`.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use ringwatch_endpoints::TextError;
use ringwatch_http::Body;

use crate::next::{Next, ResponseFuture};
use crate::request_state::RequestState;
use crate::settings::Filters;

/// Answers a request that panics with 500.
pub(super) fn panic_recovery<'a>(
    filters: &'a Filters,
    state: &'a mut RequestState<'_>,
    next: Next,
) -> ResponseFuture<'a> {
    Box::pin(async move {
        let answered = async { next.run(filters, &mut *state).await };
        match AssertUnwindSafe(answered).catch_unwind().await {
            Ok(response) => response,
            Err(panic) => {
                let (method, path) = (&state.method, state.uri.path());
                tracing::error!(%method, path, panic = panic_text(&*panic), "a request panicked");
                TextError::Panicked.response().map(Body::from)
            }
        }
    })
}

/// Returns the message of a panic.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
