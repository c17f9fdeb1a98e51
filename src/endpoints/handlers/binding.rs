//! The `binding` subresource of pods: the scheduler's decision, written into the pod.

use async_trait::async_trait;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::super::body::{RequestBody, ResponseBody};
use super::super::call::Call;
use super::super::decode::read_body;
use super::super::errors::Failure;
use super::super::params::{WriteKind, WriteParams};
use super::super::response;
use super::update::update_options;
use crate::meta::Status;
use crate::registry::{Error, FieldError, RequestContext, UpdatedObject};

/// Assigns the pod to the node that the Binding in the body names.
///
/// # Errors
/// 400, 413, 415 and 422 for a bad Binding, 404, 409 when the pod has a node already.
pub(in super::super) async fn bind(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let content = read_body(call.headers, body).await?;
    let params = WriteParams::read(call.query, WriteKind::Create)?;
    let resource = call.store.resource();
    let binding = call.decode(&content, &resource.group_version, "Binding", &params)?;
    let mut bound = Bound {
        node: node_of(&binding, call.name()).map_err(|error| call.fail(error))?,
        uid: binding.pointer("/metadata/uid").cloned(),
        name: call.name().to_owned(),
    };
    call.store
        .update(
            &call.context,
            call.namespace(),
            call.name(),
            &mut bound,
            &update_options(&params),
        )
        .await
        .map_err(|error| call.fail(error))?;
    let mut status = Status::success(crate::meta::StatusDetails::default());
    status.details = None;
    status.code = Some(StatusCode::CREATED.as_u16());
    response::serialized(StatusCode::CREATED, output.format, &status)
}

/// The node that a Binding names.
fn node_of(binding: &Value, name: &str) -> Result<String, Error> {
    let text = |path: &str| {
        let value = binding.pointer(path).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let mut errors = Vec::new();
    let kind = text("/target/kind");
    if !matches!(kind.as_str(), "" | "Node") {
        errors.push(FieldError::new(
            crate::registry::FieldErrorKind::NotSupported,
            "target.kind",
            format!("{kind:?}: supported values: \"Node\", \"\""),
        ));
    }
    let node = text("/target/name");
    if node.is_empty() {
        errors.push(FieldError::required("target.name"));
    }
    if errors.is_empty() {
        return Ok(node);
    }
    Err(Error::Invalid {
        kind: "Binding".to_owned(),
        name: name.to_owned(),
        errors,
    })
}

/// A pod on its node.
struct Bound {
    node: String,
    uid: Option<Value>,
    name: String,
}

#[async_trait]
impl UpdatedObject for Bound {
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
        let conflict = |message: String| Error::Conflict {
            resource: "pods/binding".to_owned(),
            name: self.name.clone(),
            message,
        };
        let name = &self.name;
        if existing.pointer("/metadata/deletionTimestamp").is_some() {
            return Err(conflict(format!(
                "pod {name} is being deleted, cannot be assigned to a host"
            )));
        }
        let node = existing.pointer("/spec/nodeName").and_then(Value::as_str);
        if let Some(node) = node.filter(|node| !node.is_empty()) {
            return Err(conflict(format!(
                "pod {name} is already assigned to node {node:?}"
            )));
        }
        let mut pod = existing.clone();
        pod["spec"]["nodeName"] = json!(self.node);
        schedule(
            &mut pod,
            &context
                .clock
                .wall()
                .strftime("%Y-%m-%dT%H:%M:%SZ")
                .to_string(),
        );
        Ok(pod)
    }

    fn precondition_uid(&self) -> Option<String> {
        self.uid.as_ref()?.as_str().map(str::to_owned)
    }
}

/// Says in the status that the pod has a node.
fn schedule(pod: &mut Value, now: &str) {
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now});
    if !pod["status"].is_object() {
        pod["status"] = json!({});
    }
    let conditions = &mut pod["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(known) => {
            known.retain(|it| it["type"] != "PodScheduled");
            known.push(condition);
        }
        None => *conditions = json!([condition]),
    }
}
