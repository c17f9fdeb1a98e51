//! Listing the objects of a namespace, or of all.

use http::Response;

use super::super::body::ResponseBody;
use super::super::call::Call;
use super::super::errors::Failure;
use super::super::params::ListParams;
use super::super::response;

/// Answers with the list.
///
/// # Errors
/// 400 and 422 for bad parameters, 406, 410 when the version is gone, 504 when it is not reached.
pub(in super::super) async fn list(call: &Call<'_>) -> Result<Response<ResponseBody>, Failure> {
    let output = call.list_output()?;
    let options = ListParams::read(call.query)?.into_options(call.about())?;
    let list = call
        .store
        .list(call.namespace(), options)
        .await
        .map_err(|error| call.fail(error))?;
    response::list(output, call, list).await
}
