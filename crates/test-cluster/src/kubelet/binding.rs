//! Binds a pod to a node as a request to its subresource `binding` does.

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::{Error, accessor};
use ringwatch_registry::{RequestContext, Store, UpdateOptions, UpdatedObject};
use ringwatch_resources::bind_pod;
use serde_json::{Value, json};

use super::SCHEDULER;
use crate::account::context;

/// The update of a pod that gives it a node.
struct NodeOfPod<'a> {
    uid: &'a str,
    binding: Value,
}

/// Binds a pod to a node, unless it is gone.
///
/// # Errors
/// Errors of the store; `Conflict` if it has a node already, goes or waits for gates.
pub(super) async fn bind(
    pods: &Store,
    pod: &Value,
    node: &str,
    clock: &Clock,
) -> Result<(), Error> {
    let namespace = accessor::text(pod, "namespace");
    let name = accessor::text(pod, "name");
    let mut update = NodeOfPod {
        uid: accessor::text(pod, "uid"),
        binding: json!({"target": {"kind": "Node", "name": node}}),
    };
    let context = context(SCHEDULER, clock).on_subresource("binding");
    let options = UpdateOptions::default();
    // Admission would see a pod where requests have a Binding.
    let pods = pods.admitted();
    let bound = pods.update(&context, namespace, name, &mut update, &options);
    match bound.await {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

#[async_trait]
impl UpdatedObject for NodeOfPod<'_> {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let mut pod = existing
            .cloned()
            .ok_or_else(|| Error::not_found("pods", ""))?;
        bind_pod(&mut pod, &self.binding, context.clock.wall())?;
        Ok(pod)
    }

    /// Returns true, so that the fields keep their managers: a binding is no claim to fields.
    fn managed_fields_are_current(&self) -> bool {
        true
    }

    fn precondition_uid(&self) -> Option<String> {
        Some(self.uid.to_owned())
    }
}
