//! Copies the labels of zone and region from a node to its pods. Kubernetes' PodTopologyLabels
//! plugin.

use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::storage::Interface;
use ringwatch_admission::Plugin;
use ringwatch_admission::lookup::find_tree;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{get, get_mut, set, text};
use ringwatch_registry::{Operation, Request};
use serde_json::{Value, json};

/// The labels of nodes that are copied to their pods.
const LABELS: [&str; 2] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// The plugin, with the storage of nodes.
#[derive(Debug)]
pub struct TopologyLabels {
    nodes: Arc<dyn Interface>,
}

impl TopologyLabels {
    /// Creates the plugin, which looks nodes up in this storage.
    #[must_use]
    pub fn new(nodes: Arc<dyn Interface>) -> Self {
        Self { nodes }
    }

    /// Gives an object the labels of a node, but none that it has already. A node that is not known has none.
    async fn label(&self, node: &str, object: &mut Value) -> Result<(), Error> {
        let Some(node) = find_tree(&*self.nodes, &format!("/minions/{node}")).await? else {
            return Ok(());
        };
        for name in LABELS {
            let Some(label) = node["metadata"]["labels"].get(name) else {
                continue;
            };
            if get(object, "metadata.labels").is_none_or(Value::is_null) {
                set(object, "metadata.labels", json!({}));
            }
            let labels = get_mut(object, "metadata.labels").and_then(Value::as_object_mut);
            if let Some(labels) = labels {
                labels.entry(name).or_insert_with(|| label.clone());
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Plugin for TopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<(), Error> {
        let resource = request.resource;
        let of_pods = resource.plural == "pods" && resource.group_version.group.is_empty();
        if !of_pods || request.operation != Operation::Create {
            return Ok(());
        }
        let node = match request.subresource() {
            "" => text(object, "spec.nodeName"),
            "binding" if text(object, "target.kind") == "Node" => text(object, "target.name"),
            _ => "",
        };
        if node.is_empty() {
            return Ok(());
        }
        let node = node.to_owned();
        self.label(&node, object).await
    }
}
