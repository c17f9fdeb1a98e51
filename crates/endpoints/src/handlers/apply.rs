//! Server-side apply: merges the fields that a client sets with those of other managers.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, Response};
use ringwatch_apimachinery::{Error, GroupVersion};
use ringwatch_apply::Manager;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::{RequestContext, Resource, UpdateOptions, UpdatedObject};
use serde_json::Value;

use super::update::{check_name, write};
use crate::call::Call;
use crate::decode::{self, BODY_BYTES_MAX, ExpectedKind};
use crate::errors::Failure;
use crate::params::{FieldValidation, WriteKind, WriteParams};

/// The media type of configurations.
const APPLY_MEDIA_TYPE: &str = "application/apply-patch+yaml";

/// Returns true if a patch is a server-side apply.
pub(crate) fn is_apply(headers: &HeaderMap) -> bool {
    decode::patch_media_type(headers) == APPLY_MEDIA_TYPE
}

/// Applies the configuration in the body, creates the object if there is none, and answers with it.
///
/// # Errors
/// 400, 413 and 422 for a bad configuration, 409 when others manage its fields.
pub(crate) async fn apply(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let content = call.read_body(body, BODY_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Apply)?;
    if let Some(recording) = &call.context.recording {
        recording.request_patch(&content);
    }
    let resource = call.store.resource();
    let expected = ExpectedKind {
        group_version: &resource.group_version,
        kind: &resource.kind,
        strategy: Some(&*resource.strategy),
        custom: false,
    };
    let config = configuration(call, &content, &params, expected)?;
    let mut applied = ApplyUpdate {
        config,
        name: call.name().to_owned(),
        api_version: resource.group_version.to_string(),
        resource: Arc::clone(resource),
        force: params.force,
    };
    let options = UpdateOptions {
        dry_run: params.dry_run,
        force_allow_create: true,
    };
    write(call, output, &mut applied, &options).await
}

/// Reads the configuration in a body. Unlike other objects it must name its version, and unknown fields are refused
/// whatever the client's field validation.
pub(super) fn configuration(
    call: &Call<'_>,
    content: &[u8],
    params: &WriteParams,
    expected: ExpectedKind<'_>,
) -> Result<Value, Failure> {
    let mut decoded = decode::configuration(content)?;
    check_type(&decoded.value, expected)?;
    ringwatch_apply::check_unmanaged(&decoded.value).map_err(|error| call.fail(error))?;
    let sent = decoded.value.clone();
    let schema = expected.strategy.and_then(|it| it.merge_schema());
    if schema.is_some() {
        forget_scalars(&mut decoded.value);
    }
    let known = |group_version: &GroupVersion, kind: &str| call.routes.knows(group_version, kind);
    let validation = params.field_validation;
    let typed = decode::typed(decoded, content, expected, &known, validation)?;
    ringwatch_apply::check_declared(&sent, schema, &typed.unknown)
        .map_err(|error| call.fail(error))?;
    match (params.field_validation, decode::yaml_error(&typed.repeated)) {
        (FieldValidation::Strict, Some(error)) => {
            return Err(Failure::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: {error}"
            )));
        }
        (FieldValidation::Warn, _) => {
            let repeated = typed.repeated.into_iter();
            repeated.for_each(|text| call.context.warn(text));
        }
        (FieldValidation::Strict | FieldValidation::Ignore, _) => {}
    }
    // A null takes the name from the object.
    if sent.pointer("/metadata/name").is_some() {
        check_name(call, &typed.value)?;
    }
    // A null in it is a value of its own, not what Go's types would make of it.
    Ok(sent)
}

/// Removes from a custom resource's configuration the times and numbers of metadata that are any scalars or numbers. So
/// they can be applied: what metadata cannot have is dropped of the merged object.
fn forget_scalars(config: &mut Value) {
    let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.retain(|name, value| match name.as_str() {
        "creationTimestamp" | "deletionTimestamp" => value.is_object() || value.is_array(),
        "generation" | "deletionGracePeriodSeconds" => !value.is_number(),
        _ => true,
    });
}

/// Refuses configurations of another version or kind than the expected ones, or without them (`Apply` of
/// `managedfields/internal/versioncheck.go`, 1.36).
fn check_type(config: &Value, expected: ExpectedKind<'_>) -> Result<(), Failure> {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version == expected.group_version.to_string() && kind == expected.kind {
        return Ok(());
    }
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    Err(Failure::bad_request(format!(
        "invalid object type: {group}/{version}, Kind={kind}"
    )))
}

/// The update of an object by server-side apply.
struct ApplyUpdate {
    config: Value,
    name: String,
    api_version: String,
    resource: Arc<Resource>,
    force: bool,
}

#[async_trait]
impl UpdatedObject for ApplyUpdate {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let uid = self.config.pointer("/metadata/uid").and_then(Value::as_str);
        if let (None, Some(uid)) = (existing, uid.filter(|uid| !uid.is_empty())) {
            return Err(Error::Conflict {
                resource: self.resource.qualified_name(),
                name: self.name.clone(),
                message: format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                ),
            });
        }
        let manager = Manager {
            name: &context.field_manager,
            api_version: &self.api_version,
            subresource: &context.subresource,
            has_status_subresource: self.resource.subresource("status").is_some(),
            custom: self.resource.strategy.merge_schema(),
            time: Some(context.clock.wall()),
        };
        ringwatch_apply::apply(existing, &self.config, &manager, self.force)
    }

    fn managed_fields_are_current(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_of_metadata_need_not_be_what_it_can_have() {
        let mut config = json!({"metadata": {"name": "a", "deletionTimestamp": "", "creationTimestamp": [],
            "generation": 1.5, "deletionGracePeriodSeconds": "1"}});
        forget_scalars(&mut config);
        let left = json!({"name": "a", "creationTimestamp": [], "deletionGracePeriodSeconds": "1"});
        assert_eq!(config, json!({"metadata": left}));
    }
}
