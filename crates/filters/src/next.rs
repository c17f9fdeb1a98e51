//! Filters, and the way from one to the next.

use futures::future::BoxFuture;
use http::Response;
use ringwatch_http::Body;

use super::endpoint;
use super::request_state::RequestState;
use super::settings::Filters;

/// A response to come.
pub(super) type ResponseFuture<'a> = BoxFuture<'a, Response<Body>>;

/// A step that requests take before the API. One that has nothing to do for a request returns the future of those
/// behind it, so that it costs a call and no memory.
#[derive(Clone, Copy)]
pub(super) struct Filter {
    /// The name of the function of kube-apiserver that does the same, which begins with `With`, or our own.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is for readers, and the test of the order")
    )]
    pub(super) name: &'static str,
    run: RunFilter,
}

type RunFilter = for<'a, 'c> fn(&'a Filters, &'a mut RequestState<'c>, Next) -> ResponseFuture<'a>;

impl Filter {
    pub(super) const fn new(name: &'static str, run: RunFilter) -> Self {
        Self { name, run }
    }
}

/// The filters that a request has still before it.
#[derive(Clone, Copy)]
pub(super) struct Next(pub(super) &'static [Filter]);

impl Next {
    /// Answers the request by the filters that are left, and by its handler behind the last one.
    pub(super) fn run<'a>(
        self,
        filters: &'a Filters,
        state: &'a mut RequestState<'_>,
    ) -> ResponseFuture<'a> {
        match self.0.split_first() {
            Some((filter, rest)) => (filter.run)(filters, state, Self(rest)),
            None => Box::pin(endpoint::answer(filters, state)),
        }
    }
}

/// Returns the future of a response that is there already.
pub(super) fn ready<'a>(response: Response<impl Into<Body>>) -> ResponseFuture<'a> {
    Box::pin(std::future::ready(response.map(Into::into)))
}
