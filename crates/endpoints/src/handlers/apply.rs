//! Server-side apply: merges the fields that a client sets with those of other managers.

use async_trait::async_trait;
use http::{HeaderMap, Response};
use ringwatch_apimachinery::{Error, GroupVersion};
use ringwatch_apply::Manager;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::{RequestContext, UpdateOptions, UpdatedObject};
use serde_json::Value;

use super::update::{check_name, check_names, write};
use crate::call::Call;
use crate::decode::{self, BODY_BYTES_MAX, DecodedBody, ExpectedKind};
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
/// 400, 413, 422 and 500 for a bad configuration, 409 when others manage its fields.
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
    let mut applied = ApplyUpdate {
        call,
        config: decode::configuration(&content),
        api_version: resource.group_version.to_string(),
        params: &params,
    };
    let options = UpdateOptions {
        dry_run: params.dry_run,
        force_allow_create: true,
    };
    write(call, output, &mut applied, &options).await
}

/// Reads the configuration of a Scale, and puts it into its type.
///
/// # Errors
/// As an apply of the object.
pub(super) fn scale_configuration(
    call: &Call<'_>,
    content: &[u8],
    params: &WriteParams,
    expected: ExpectedKind<'_>,
) -> Result<Value, Failure> {
    let fail = |error: Error| call.fail(error);
    let decoded = decode::configuration(content)?;
    let config = &decoded.value;
    let version = expected.group_version.to_string();
    check_type(config, &version, expected.kind).map_err(fail)?;
    ringwatch_apply::check_configuration(config, None).map_err(fail)?;
    let mut scale = config.clone();
    ringwatch_apply::convert_applied(config, &mut scale).map_err(fail)?;
    tell_repeated(call, &decoded, params.field_validation).map_err(fail)?;
    // A null takes the name from the object.
    if config.pointer("/metadata/name").is_some() {
        check_name(call, &scale)?;
    }
    Ok(scale)
}

/// Tells of the keys that a configuration has twice, as the client wants to be told.
fn tell_repeated(
    call: &Call<'_>,
    config: &DecodedBody,
    validation: FieldValidation,
) -> Result<(), Error> {
    match (validation, decode::yaml_error(&config.repeated)) {
        (FieldValidation::Strict, Some(error)) => Err(Error::BadRequest(format!(
            "error strict decoding YAML: error converting YAML to JSON: {error}"
        ))),
        (FieldValidation::Warn, _) => {
            let repeated = config.repeated.iter().cloned();
            repeated.for_each(|text| call.context.warn(text));
            Ok(())
        }
        (FieldValidation::Strict | FieldValidation::Ignore, _) => Ok(()),
    }
}

/// Refuses configurations of another version or kind than the expected ones, or without them (`Apply` of
/// `managedfields/internal/versioncheck.go`, 1.36).
fn check_type(config: &Value, expected_version: &str, expected_kind: &str) -> Result<(), Error> {
    let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version == expected_version && kind == expected_kind {
        return Ok(());
    }
    // Without a version that can be read there is no type at all.
    let (GroupVersion { group, version }, kind) = match GroupVersion::parse(version) {
        Some(version) => (version, kind),
        None => (GroupVersion::new("", ""), ""),
    };
    Err(Error::BadRequest(format!(
        "invalid object type: {group}/{version}, Kind={kind}"
    )))
}

/// The update of an object by server-side apply.
struct ApplyUpdate<'a> {
    call: &'a Call<'a>,
    config: Result<DecodedBody, Failure>,
    api_version: String,
    params: &'a WriteParams,
}

#[async_trait]
impl UpdatedObject for ApplyUpdate<'_> {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let resource = self.call.store.resource();
        let undecodable = |failure: &Failure| Error::BadRequest(failure.status().message.clone());
        let decoded = self.config.as_ref().map_err(undecodable)?;
        let config = &decoded.value;
        check_type(config, &self.api_version, &resource.kind)?;
        let manager = Manager {
            name: &context.field_manager,
            api_version: &self.api_version,
            subresource: &context.subresource,
            has_status_subresource: resource.subresource("status").is_some(),
            custom: resource.strategy.merge_schema(),
            time: Some(context.clock.wall()),
        };
        let applied = ringwatch_apply::apply(existing, config, &manager, self.params.force)?;
        tell_repeated(self.call, decoded, self.params.field_validation)?;
        let uid = applied.pointer("/metadata/uid").and_then(Value::as_str);
        if let (None, Some(uid)) = (existing, uid.filter(|uid| !uid.is_empty())) {
            return Err(Error::Conflict {
                resource: resource.qualified_name(),
                name: self.call.name().to_owned(),
                message: format!(
                    "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                ),
            });
        }
        let (namespace, name) = (self.call.namespace(), self.call.name());
        check_names(&applied, resource, namespace, name).map_err(Error::BadRequest)?;
        Ok(applied)
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
    fn a_configuration_is_of_the_type_that_is_applied() {
        let check = |version: Value, kind: Value| {
            let config = json!({"apiVersion": version, "kind": kind});
            check_type(&config, "v1", "ConfigMap").map_err(|error| error.to_string())
        };
        assert_eq!(check(json!("v1"), json!("ConfigMap")), Ok(()));
        for (version, kind, found) in [
            (json!("x/v1"), json!("ConfigMap"), "x/v1, Kind=ConfigMap"),
            (json!("v1"), json!(5), "/v1, Kind="),
            (json!(null), json!("ConfigMap"), "/, Kind=ConfigMap"),
            (json!("a/b/c"), json!("ConfigMap"), "/, Kind="),
        ] {
            let expected = format!("invalid object type: {found}");
            assert_eq!(check(version, kind), Err(expected));
        }
    }
}
