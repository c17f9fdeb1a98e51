//! Routes requests of subresources that are not read and written like their object to their handlers.

use http::Response;
use ringwatch_registry::Verb;

use super::{
    bind, evict, get_scale, patch_scale, pod_log, pod_stream, proxy, request_token, update_scale,
};
use crate::endpoints::body::{RequestBody, ResponseBody};
use crate::endpoints::call::Call;
use crate::endpoints::errors::Failure;

/// Passes a request to the handler of its subresource. The rows of resources name these subresources and their verbs
/// with [`ringwatch_registry::Served::Handler`].
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
