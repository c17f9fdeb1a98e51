//! Deletes the objects that a list selects: DELETE of a collection.

use http::Response;
use ringwatch_apimachinery::FieldError;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::IGNORE_STORE_READ_ERROR;

use super::delete::delete_options;
use crate::call::Call;
use crate::errors::Failure;
use crate::object_response;

/// Deletes the objects and answers with the list of them.
///
/// # Errors
/// As a list and a deletion.
pub(crate) async fn delete_collection(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let selection = call.list_params()?;
    let options = delete_options(call, body).await?;
    if options.ignore_store_read_error {
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let error = FieldError::invalid(IGNORE_STORE_READ_ERROR, &true.into(), why);
        return Err(Failure::invalid_options("DeleteOptions", vec![error]));
    }
    call.store.warn_of_default(&call.context, &options);
    // kube-apiserver's store reads the shard selector and the version, after it has warned.
    let selection = selection.into_options(call.about())?;
    let list = call
        .store
        .delete_collection(&call.context, call.namespace(), options, selection)
        .await
        .map_err(|error| call.fail(error))?;
    object_response::list(output, call, list).await
}
