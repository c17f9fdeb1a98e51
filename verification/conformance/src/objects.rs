//! Objects for the suite: pods with a label and a node name.

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::{FieldPath, FieldSchema, Object};
use ringwatch::storage::{NextContent, Rejection, TryUpdate};
use serde_json::{Value, json};

/// Returns the fields that the suite selects by.
pub fn schema() -> FieldSchema {
    FieldSchema::new([FieldPath {
        name: "spec.nodeName".into(),
        default: "",
        from: &[],
        indexed: true,
    }])
}

/// Returns the key of a pod.
pub fn key(namespace: &str, name: &str) -> String {
    format!("/pods/{namespace}/{name}")
}

/// Returns a pod with no node yet.
pub fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": format!("uid-of-{namespace}-{name}"),
            "labels": {"name": name},
        },
        "spec": {"nodeName": ""},
    })
}

/// Returns the pod on a node.
pub(crate) fn with_node(mut pod: Value, node: &str) -> Value {
    pod["spec"]["nodeName"] = json!(node);
    pod
}

/// An update that sets one string.
pub(crate) struct Set {
    /// The member, as a JSON pointer.
    pub(crate) at: String,
    /// Its new value.
    pub(crate) to: String,
}

#[async_trait]
impl TryUpdate for Set {
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let mut object = codec::tree(existing.ok_or("gone")?)?;
        let (parent, member) = self.at.rsplit_once('/').ok_or("no pointer")?;
        object.pointer_mut(parent).ok_or("no such member")?[member] = json!(self.to);
        Ok(NextContent { object, ttl: None })
    }
}
