//! Patches an object: PATCH with a JSON patch, a merge patch or a strategic merge patch.
//!
//! The patch runs inside the update, again on every new content, so that it never conflicts with
//! other writers unless it carries a resource version itself.

use async_trait::async_trait;
use http::Response;
use ringwatch_apimachinery::Error;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::{RequestContext, UpdatedObject};
use serde_json::Value;

use super::update::{check_name, update_options, write};
use crate::call::Call;
use crate::decode::{self, BODY_BYTES_MAX, DecodedBody};
use crate::errors::Failure;
use crate::params::{FieldValidation, WriteKind, WriteParams};
use crate::patches::{Patch, Syntax};

/// The media types of patches that custom resources accept.
const CUSTOM_PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];

/// Patches the object and answers with it.
///
/// # Errors
/// 400, 413, 415 and 422 for a bad patch, 404, 409 when it carries a version that is not current.
pub(crate) async fn patch(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let (patch, params) = read_patch(call, body).await?;
    let mut patched = PatchUpdate {
        call,
        patch,
        validation: params.field_validation,
    };
    write(call, output, &mut patched, &update_options(&params)).await
}

/// Reads the patch in the body, and the query parameters.
pub(super) async fn read_patch(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<(Patch, WriteParams), Failure> {
    let media_type = decode::patch_media_type(call.headers);
    if call.store.resource().is_custom() && !CUSTOM_PATCHES.contains(&media_type) {
        return Err(Failure::unknown_format(CUSTOM_PATCHES));
    }
    if !media_type.ends_with("-patch+json") {
        return Err(Failure::unsupported_media_type());
    }
    let content = call.read_body(body, BODY_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Patch)?;
    if let Some(recording) = &call.context.recording {
        recording.request_patch(&content);
    }
    let syntax = Syntax::from_media_type(media_type)?;
    let DecodedBody {
        value,
        mut complaints,
        ..
    } = decode::patch(&content).map_err(|why| syntax.undecodable(&why, params.field_validation))?;
    if matches!(syntax, Syntax::Json) {
        complaints.extend(decode::unknown_members(&value, complaints.len()));
    }
    let patch = Patch::read(syntax, value, complaints, params.field_validation)?;
    Ok((patch, params))
}

/// The update of an object by a patch.
struct PatchUpdate<'a> {
    call: &'a Call<'a>,
    patch: Patch,
    validation: FieldValidation,
}

#[async_trait]
impl UpdatedObject for PatchUpdate<'_> {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let existing = existing.ok_or_else(|| {
            Error::not_found(
                self.call.store.resource().qualified_name(),
                self.call.name(),
            )
        })?;
        let mut object = self.patch.apply(existing)?;
        self.call
            .check_patched(&mut object, &self.patch, existing, self.validation)?;
        check_name(self.call, &object)
            .map_err(|failure| Error::BadRequest(failure.status().message.clone()))?;
        Ok(object)
    }
}
