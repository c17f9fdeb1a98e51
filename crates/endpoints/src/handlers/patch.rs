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

use super::update::{check_names, update_options, write};
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

/// Reads the patch in the body, and the query parameters. What is wrong with the patch is told once there is an object
/// that it is for.
pub(super) async fn read_patch(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<(SentPatch, WriteParams), Failure> {
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
    let patch = decoded(syntax, &content, params.field_validation);
    Ok((SentPatch(patch), params))
}

fn decoded(syntax: Syntax, content: &[u8], validation: FieldValidation) -> Result<Patch, Failure> {
    let DecodedBody {
        value,
        mut complaints,
        ..
    } = decode::patch(content).map_err(|why| syntax.undecodable(&why, validation))?;
    if matches!(syntax, Syntax::Json) {
        complaints.extend(decode::unknown_members(&value, complaints.len()));
    }
    Patch::read(syntax, value, complaints, validation)
}

/// The patch in a body, or what is wrong with it.
pub(super) struct SentPatch(Result<Patch, Failure>);

impl SentPatch {
    /// Returns the patch.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for what is none, [`Error::Denied`] for one that has too many operations.
    pub(super) fn patch(&self) -> Result<&Patch, Error> {
        self.0
            .as_ref()
            .map_err(|failure| match failure.is_bad_request() {
                true => Error::BadRequest(failure.status().message.clone()),
                false => Error::Denied(Box::new(failure.status().clone())),
            })
    }
}

#[cfg(test)]
impl From<Patch> for SentPatch {
    fn from(patch: Patch) -> Self {
        Self(Ok(patch))
    }
}

/// The update of an object by a patch.
struct PatchUpdate<'a> {
    call: &'a Call<'a>,
    patch: SentPatch,
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
        let patch = self.patch.patch()?;
        let mut object = patch.apply(existing)?;
        self.call
            .check_patched(&mut object, patch, existing, self.validation)?;
        let (namespace, name) = (self.call.namespace(), self.call.name());
        let resource = self.call.store.resource();
        check_names(&object, resource, namespace, name).map_err(Error::BadRequest)?;
        Ok(object)
    }
}
