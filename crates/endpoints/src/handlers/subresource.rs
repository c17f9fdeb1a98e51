//! Routes a request to a subresource with a handler of its own, such as `pods/exec`, to that handler.

use http::Response;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::Verb;

use super::{
    bind, evict, get_scale, patch_scale, pod_log, pod_stream, proxy, request_token, update_scale,
};
use crate::call::Call;
use crate::errors::Failure;

/// Passes a request to the handler of its subresource, one that is declared with
/// [`Served::Handler`](ringwatch_registry::Served::Handler): in the rows of the built-in resources, or for custom
/// resources, which have `scale`.
///
/// # Errors
/// Those of the handler; 405 for a subresource or verb that has none.
pub(crate) async fn subresource(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    match (call.info.subresource.as_str(), call.verb) {
        ("scale", Verb::Get) => get_scale(call).await,
        ("scale", Verb::Update) => update_scale(call, body).await,
        ("scale", Verb::Patch) => patch_scale(call, body).await,
        ("token", Verb::Create) => request_token(call, body).await,
        ("binding", Verb::Create) => bind(call, body).await,
        ("eviction", Verb::Create) => evict(call, body).await,
        ("log", Verb::Get) => pod_log(call).await,
        ("exec" | "attach" | "portforward", _) => pod_stream(call).await,
        ("proxy", _) => proxy(call, body).await,
        _ => Err(Failure::method_not_allowed()),
    }
}
