//! Objects that are posted to a subresource of an object, such as a Binding to that of a pod.

use http::{Response, StatusCode};
use ringwatch::meta::{Status, StatusDetails};
use ringwatch_http::ResponseBody;
use ringwatch_registry::store::normalize_sent_metadata;
use ringwatch_registry::{Operation, SubresourceCall};
use serde_json::Value;

use crate::call::Call;
use crate::errors::Failure;
use crate::negotiation::Output;
use crate::response;

/// Sets the namespace of what is posted to that of the request, and gives its metadata the form of their type.
///
/// # Errors
/// 400 if it says that it belongs to another namespace.
pub(super) fn place(call: &Call<'_>, posted: &mut Value) -> Result<(), Failure> {
    let placed = call.store.ensure_namespace(call.namespace(), posted);
    placed.map_err(|error| call.fail(error))?;
    normalize_sent_metadata(&call.context, posted);
    Ok(())
}

/// Passes what is posted, for the object of a name, to admission, which may change it.
///
/// # Errors
/// The refusal of a plugin.
pub(super) async fn admit(
    call: &Call<'_>,
    name: &str,
    posted: &mut Value,
    dry_run: bool,
) -> Result<(), Failure> {
    let subresource = SubresourceCall {
        namespace: call.namespace(),
        name,
        operation: Operation::Create,
        old: None,
        dry_run,
    };
    let admitted = call.store.admit_other(&call.context, subresource, posted);
    admitted.await.map_err(|error| call.fail(error))
}

/// Responds with the Status of success that stands for what was posted.
pub(super) fn created(output: Output) -> Result<Response<ResponseBody>, Failure> {
    let mut status = Status::success(StatusDetails::default());
    status.details = None;
    status.code = Some(StatusCode::CREATED.as_u16());
    response::serialized(StatusCode::CREATED, output.format, &status)
}
