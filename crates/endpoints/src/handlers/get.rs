//! Reads one object, or a subresource that is read like one: GET.

use http::{Response, StatusCode};
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::GetOptions;
use ringwatch_http::ResponseBody;

use crate::call::Call;
use crate::errors::Failure;
use crate::object_response;

/// Answers with the object.
///
/// # Errors
/// 404, 406, 504 when the version asked for is not reached.
pub(crate) async fn get(call: &Call<'_>) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let options = get_options(call)?;
    let object = call
        .store
        .get(call.namespace(), call.name(), options)
        .await
        .map_err(|error| call.fail(error))?;
    object_response::object(StatusCode::OK, output, call, object).await
}

/// Reads the query parameters of a read.
pub(super) fn get_options(call: &Call<'_>) -> Result<GetOptions, Failure> {
    let text = call.query.first("resourceVersion");
    let resource_version = ResourceVersion::parse(text)
        .map_err(|error| Failure::invalid_version(&error, call.about().verb))?;
    Ok(GetOptions { resource_version })
}
