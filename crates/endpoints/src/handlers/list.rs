//! Lists the objects of a namespace, or of all: GET of a collection.

use http::Response;
use ringwatch::storage::StorageError;
use ringwatch_apimachinery::Error;
use ringwatch_http::ResponseBody;

use crate::call::Call;
use crate::errors::Failure;
use crate::memory_gate::MemoryGate;
use crate::object_response;

/// Answers with the list.
///
/// # Errors
/// 400 and 422 for bad parameters, 406, 410 when the version is gone, 429 when memory is short, 504
/// when the version is not reached.
pub(crate) async fn list(
    call: &Call<'_>,
    memory: &MemoryGate,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.list_output()?;
    let mut options = call.list_params()?.into_options(call.about())?;
    options.memory = Some(memory.ledger().clone());
    let list = call.store.list(call.namespace(), options).await;
    let list = list.map_err(|error| match error {
        Error::Storage(StorageError::OutOfMemory(exceeded)) => memory.refuse_list(exceeded),
        other => call.fail(other),
    })?;
    object_response::list(output, call, list).await
}
