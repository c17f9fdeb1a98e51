//! Creates an object: POST to a collection.

use http::{Response, StatusCode};
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::CreateOptions;

use crate::call::Call;
use crate::decode::BODY_BYTES_MAX;
use crate::errors::Failure;
use crate::object_response;
use crate::params::{WriteKind, WriteParams};

/// Creates the object in the body and answers with it.
///
/// # Errors
/// 400, 413, 415 and 422 for a bad request, 404 without the namespace, 409 for a taken name.
pub(crate) async fn create(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let content = call.read_body(body, BODY_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Create)?;
    let resource = call.store.resource();
    let object = call.decode(&content, &resource.group_version, &resource.kind, &params)?;
    let options = CreateOptions {
        dry_run: params.dry_run,
    };
    let created = call
        .store
        .create(&call.context, call.namespace(), object, &options)
        .await
        .map_err(|error| call.fail(error))?;
    object_response::object(StatusCode::CREATED, output, call, created).await
}
