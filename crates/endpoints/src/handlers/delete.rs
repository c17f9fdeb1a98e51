//! Deletes one object, or marks it for deletion: DELETE with options in the query or the body.

use bytes::Bytes;
use http::{Response, StatusCode};
use ringwatch::meta::{Status, StatusDetails};
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::DeleteOptions;
use serde_json::{Value, json};

use crate::call::Call;
use crate::decode::{self, REVIEW_BYTES_MAX};
use crate::errors::Failure;
use crate::object_response;
use crate::params::{SCHEME, read_delete_options};
use crate::response;

/// The verb that a user needs besides `delete` to delete an object that cannot be read.
const UNSAFE_DELETE: &str = "unsafe-delete-ignore-read-errors";

/// Deletes the object or marks it for deletion, and answers with it or a Status about it.
///
/// # Errors
/// 400, 413, 415 and 422 for bad options, 403, 404, 409 when a precondition fails.
pub(crate) async fn delete(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let options = delete_options(call, body).await?;
    let cascades_by_hand = options.orphan_dependents == Some(false);
    let unsafely = options.ignore_store_read_error;
    let deleted = call
        .store
        .delete(&call.context, call.namespace(), call.name(), options)
        .await
        .map_err(|error| call.fail(error))?;
    let code = if !deleted.finished && cascades_by_hand {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    };
    if !deleted.finished || deleted.returns_object {
        return object_response::object(code, output, call, deleted.object).await;
    }
    let resource = call.store.resource();
    if unsafely {
        let status = Status::success(StatusDetails {
            name: call.name().to_owned(),
            kind: resource.kind.clone(),
            ..StatusDetails::default()
        });
        return response::serialized(code, output.format, &status);
    }
    let status = Status::success(StatusDetails {
        // A webhook may have renamed it when it was created by an update.
        name: deleted.object.name().to_owned(),
        group: resource.group_version.group.clone(),
        kind: resource.plural.clone(),
        uid: deleted.object.uid().to_owned(),
        ..StatusDetails::default()
    });
    response::serialized(code, output.format, &status)
}

/// Reads DeleteOptions from the body, or from the query parameters.
pub(super) async fn delete_options(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<DeleteOptions, Failure> {
    let content = call.read_body(body, REVIEW_BYTES_MAX).await?;
    let options = document(call, &content)?;
    if let (Some(recording), Some(options)) = (&call.context.recording, &options) {
        recording.request_object(options);
    }
    let options = read_delete_options(call.query, options, call.features.unsafe_deletion)?;
    if options.ignore_store_read_error {
        call.check(UNSAFE_DELETE).await?;
    }
    // They are set only once, here.
    let _ = call.context.options.set(options.to_value());
    Ok(options)
}

fn document(call: &Call<'_>, content: &Bytes) -> Result<Option<Value>, Failure> {
    if content.is_empty() {
        return Ok(None);
    }
    match decode::document(call.headers, content, ("meta.k8s.io/v1", "DeleteOptions"))? {
        Ok(decoded) if decoded.value.is_object() => {
            let members = decoded.value.as_object();
            let checked = members.map_or(Ok(()), decode::check_type_texts);
            checked.map_err(Failure::bad_request)?;
            Ok(Some(decoded.value))
        }
        Ok(decoded) if decoded.value.is_null() => Ok(Some(json!({}))),
        // A list of values would be read as those of the members in their order.
        Ok(decoded) => Err(Failure::bad_request(decode::no_object(&decoded.value))),
        Err(error) if error.starts_with("no kind ") => Err(Failure::bad_request(format!(
            "{error} in scheme \"{SCHEME}\""
        ))),
        Err(error) => Err(Failure::bad_request(error)),
    }
}
