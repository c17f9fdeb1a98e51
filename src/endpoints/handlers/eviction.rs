//! The `eviction` subresource of pods: a deletion that says why. `kubectl drain` asks for it.

use async_trait::async_trait;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::body::{RequestBody, ResponseBody};
use super::super::call::Call;
use super::super::decode::read_body;
use super::super::errors::Failure;
use super::super::params::{WriteKind, WriteParams, read_delete_options};
use super::super::response;
use super::update::update_options;
use crate::meta::Status;
use crate::registry::resources::mark_evicted;
use crate::registry::{DeleteOptions, Error, GroupVersion, RequestContext, UpdatedObject};

/// Marks a pod that runs and deletes it, with the options in the Eviction.
///
/// # Errors
/// 400, 413, 415 and 422 for a bad Eviction, 404, 409 when a precondition fails.
pub(in super::super) async fn evict(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let content = read_body(call.headers, body).await?;
    let params = WriteParams::read(call.query, WriteKind::Create)?;
    let version = GroupVersion::new("policy", "v1");
    let eviction = call.decode(&content, &version, "Eviction", &params)?;
    let name = eviction.pointer("/metadata/name").and_then(Value::as_str);
    if name != Some(call.name()) {
        return Err(Failure::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let options = eviction.get("deleteOptions").filter(|it| !it.is_null());
    let options = options.cloned().unwrap_or_else(|| json!({}));
    let mut options = read_delete_options(call.query, Some(options), false)?;
    options.dry_run |= params.dry_run;
    if !options.dry_run {
        mark(call, &params, &mut options).await?;
    }
    call.store
        .delete(&call.context, call.namespace(), call.name(), options)
        .await
        .map_err(|error| call.fail(error))?;
    let mut status = Status::success(crate::meta::StatusDetails::default());
    status.details = None;
    status.code = Some(StatusCode::CREATED.as_u16());
    response::serialized(StatusCode::CREATED, output.format, &status)
}

/// Notes in the pod that it is evicted. A version that the pod must have becomes the new one.
async fn mark(
    call: &Call<'_>,
    params: &WriteParams,
    options: &mut DeleteOptions,
) -> Result<(), Failure> {
    let mut evicted = Evicted {
        name: call.name().to_owned(),
        options: options.clone(),
    };
    let (pod, _) = call
        .store
        .update(
            &call.context,
            call.namespace(),
            call.name(),
            &mut evicted,
            &update_options(params),
        )
        .await
        .map_err(|error| call.fail(error))?;
    if let Some(version) = &mut options.precondition_resource_version {
        *version = pod.revision().to_string();
    }
    Ok(())
}

/// A pod that will be deleted.
struct Evicted {
    name: String,
    options: DeleteOptions,
}

#[async_trait]
impl UpdatedObject for Evicted {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let Some(existing) = existing else {
            return Err(Error::NotFound {
                resource: "pods".to_owned(),
                name: self.name.clone(),
            });
        };
        let version = existing.pointer("/metadata/resourceVersion");
        let version = version.and_then(Value::as_str).unwrap_or_default();
        if let Some(wanted) = &self.options.precondition_resource_version
            && wanted != version
        {
            return Err(Error::Conflict {
                resource: "pods".to_owned(),
                name: self.name.clone(),
                message: format!(
                    "the ResourceVersion in the precondition ({wanted}) does not match the \
                     ResourceVersion in record ({version}). The object might have been modified"
                ),
            });
        }
        let mut pod = existing.clone();
        mark_evicted(&mut pod, context.clock.wall());
        Ok(pod)
    }

    /// An eviction is not a claim to fields: who manages what stays as it is.
    fn tracks_fields(&self) -> bool {
        true
    }

    fn precondition_uid(&self) -> Option<String> {
        self.options.precondition_uid.clone()
    }
}
