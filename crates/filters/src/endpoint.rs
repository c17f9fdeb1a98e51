//! The end of the chain of filters: a request is authorized, and its handler answers it.

use std::future::Future;
use std::mem;
use std::sync::Arc;

use http::{Method, Request, Response};
use ringwatch_endpoints::{self as endpoints, Caller, OwnPaths};
use ringwatch_flowcontrol::Requester;
use ringwatch_http::{Body, RequestBody, ResponseBody, full};

use super::request_state::RequestState;
use super::settings::Filters;

/// Authorizes a request and has its handler answer it. Both may move to the threads for large work.
pub(super) fn answer<'a>(
    filters: &'a Filters,
    state: &mut RequestState<'_>,
) -> impl Future<Output = Response<Body>> + use<'a> {
    let requester = Requester::from(&state.user);
    let request = mem::replace(&mut state.request, Request::new(full("")));
    let authorizer = state.authorizer.take();
    let info = Arc::clone(&state.info);
    let (own, api) = (Arc::clone(&filters.own), Arc::clone(&filters.api));
    let caller = Caller {
        user: mem::take(&mut state.user),
        address: state.client.address,
        credentials: state.credentials.take(),
        recording: state.recording.clone(),
    };
    let clock = caller.recording.is_some().then(|| filters.clock.clone());
    let answering = async move {
        if let Some(authorizer) = authorizer {
            let query = request.uri().query().unwrap_or_default();
            let recording = caller.recording.as_deref().zip(clock.as_ref());
            let (user, headers) = (&caller.user, request.headers());
            let refused = endpoints::refusal(&authorizer, user, &info, query, headers, recording);
            if let Some(refusal) = refused.await {
                return refusal;
            }
        }
        match answer_own(&*own, request, &info.path).await {
            Ok(response) => response,
            Err(request) => api.handle(request, info, caller).await,
        }
    };
    let answering = Box::pin(answering);
    async move {
        let response = filters
            .limits
            .large_work
            .answer(answering, &requester)
            .await;
        response.map(Body::from)
    }
}

/// Answers a request if its path is one of the server's own; else gives it back.
async fn answer_own(
    own: &dyn OwnPaths,
    request: Request<RequestBody>,
    path: &str,
) -> Result<Response<ResponseBody>, Request<RequestBody>> {
    let request = match *request.method() {
        Method::PUT => match own.put(request, path).await {
            Ok(response) => return Ok(response),
            Err(request) => request,
        },
        _ => request,
    };
    let query = request.uri().query().unwrap_or_default();
    let answered = own.answer(request.method(), path, query, request.headers());
    answered.await.ok_or(request)
}
