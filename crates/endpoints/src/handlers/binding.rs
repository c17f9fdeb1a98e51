//! The `binding` subresource of pods: the scheduler's decision, written into the pod.

use async_trait::async_trait;
use http::Response;
use ringwatch_apimachinery::{Error, FieldError};
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::{RequestContext, UpdatedObject};
use ringwatch_resources::bind_pod;
use serde_json::Value;

use super::posted;
use super::update::update_options;
use crate::call::Call;
use crate::decode::BINDING_BYTES_MAX;
use crate::errors::Failure;
use crate::params::{WriteKind, WriteParams};

/// Assigns the pod to the node that the Binding in the body names.
///
/// # Errors
/// 400, 413, 415 and 500 for a bad Binding, 404, 409 when the pod has a node already.
pub(crate) async fn bind(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let content = call.read_body(body, BINDING_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Create)?;
    let resource = call.store.resource();
    let mut binding = call.decode(&content, &resource.group_version, "Binding", &params)?;
    posted::place(call, &mut binding)?;
    let name = pod_name(call, &binding)?;
    check_target(&binding)?;
    posted::admit(call, &name, &mut binding, params.dry_run).await?;
    let mut bound = Bound {
        name: name.clone(),
        binding,
    };
    call.store
        .admitted()
        .update(
            &call.context,
            call.namespace(),
            &name,
            &mut bound,
            &update_options(&params),
        )
        .await
        .map_err(|error| call.fail(error))?;
    posted::created(output)
}

/// Returns the name of the pod to bind: that in the path, which the Binding must repeat, or else that in the Binding.
fn pod_name(call: &Call<'_>, binding: &Value) -> Result<String, Failure> {
    let named = binding.pointer("/metadata/name").and_then(Value::as_str);
    let named = named.unwrap_or_default();
    if !call.name().is_empty() && call.name() != named {
        return Err(Failure::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    Ok(named.to_owned())
}

/// Checks that a Binding names a node. Follows `ValidatePodBinding` in pkg/apis/core/validation/validation.go of
/// Kubernetes 1.36.
fn check_target(binding: &Value) -> Result<(), Failure> {
    let text = |path: &str| {
        let value = binding.pointer(path).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let mut errors = Vec::new();
    let kind = text("/target/kind");
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::new(
            ringwatch_apimachinery::FieldErrorKind::NotSupported,
            "target.kind",
            format!("{kind:?}: supported values: \"Node\", \"<empty>\""),
        ));
    }
    if text("/target/name").is_empty() {
        errors.push(FieldError::required("target.name"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::wrong_fields(&errors))
}

/// The update of a pod that binds it to a node.
struct Bound {
    name: String,
    binding: Value,
}

#[async_trait]
impl UpdatedObject for Bound {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let existing = existing.ok_or_else(|| Error::not_found("pods", &self.name))?;
        let mut pod = existing.clone();
        bind_pod(&mut pod, &self.binding, context.clock.wall())?;
        Ok(pod)
    }

    /// Returns true, so that the fields keep their managers: a binding is no claim to fields.
    fn managed_fields_are_current(&self) -> bool {
        true
    }

    fn precondition_uid(&self) -> Option<String> {
        let uid = self.binding.pointer("/metadata/uid")?.as_str();
        uid.map(str::to_owned)
    }

    fn precondition_resource_version(&self) -> Option<String> {
        let version = self.binding.pointer("/metadata/resourceVersion")?.as_str();
        version.map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_binding_names_a_node() {
        let check = |target: Value| check_target(&json!({ "target": target }));
        assert!(check(json!({"name": "n"})).is_ok());
        assert!(check(json!({"kind": "Node", "name": "n"})).is_ok());
        let failure = check(json!({"kind": "Pod"})).expect_err("a failure");
        assert_eq!(failure.status().code, Some(500));
        assert_eq!(
            failure.status().message,
            "[target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\", target.name: Required value]"
        );
    }
}
