//! Taints new nodes as not ready, and adds tolerations to pods for nodes that are not ready or unreachable. Kubernetes'
//! TaintNodesByCondition and DefaultTolerationSeconds plugins.

use async_trait::async_trait;
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::path::{list, set, text};
use ringwatch_registry::{Operation, Request};
use serde_json::{Value, json};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Taints new nodes as not ready; the node lifecycle controller removes the taint.
#[derive(Debug)]
pub struct NodeTaint;

#[async_trait]
impl Plugin for NodeTaint {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    async fn admit(&self, request: &Request<'_>, node: &mut Value) -> Result<(), Error> {
        if !request.creates("", "nodes") {
            return Ok(());
        }
        let mut taints = list(node, "spec.taints").to_vec();
        let tainted = taints
            .iter()
            .any(|taint| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule");
        if !tainted {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
            set(node, "spec.taints", Value::Array(taints));
        }
        Ok(())
    }
}

/// Adds tolerations to pods that have none for nodes that are not ready or unreachable.
#[derive(Clone, Copy, Debug)]
pub struct DefaultTolerations {
    /// Time that a pod stays on a node that is not ready, in seconds.
    pub not_ready_seconds: i64,
    /// Time that a pod stays on a node that cannot be reached, in seconds.
    pub unreachable_seconds: i64,
}

#[async_trait]
impl Plugin for DefaultTolerations {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    async fn admit(&self, request: &Request<'_>, pod: &mut Value) -> Result<(), Error> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        if writes && request.is_of("", "pods") {
            self.tolerate(pod);
        }
        Ok(())
    }
}

impl DefaultTolerations {
    fn tolerate(&self, pod: &mut Value) {
        let mut tolerations = list(pod, "spec.tolerations").to_vec();
        let before = tolerations.len();
        for (key, seconds) in [
            (NOT_READY, self.not_ready_seconds),
            (UNREACHABLE, self.unreachable_seconds),
        ] {
            let tolerated = tolerations.iter().any(|toleration| {
                matches!(text(toleration, "effect"), "" | "NoExecute")
                    && (text(toleration, "key") == key || text(toleration, "key").is_empty())
            });
            if !tolerated {
                tolerations.push(json!({
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": seconds,
                }));
            }
        }
        if tolerations.len() != before {
            set(pod, "spec.tolerations", Value::Array(tolerations));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_tolerate_troubles_unless_they_say_how() {
        let plugin = DefaultTolerations {
            not_ready_seconds: 300,
            unreachable_seconds: -1,
        };
        let mut pod = json!({"spec": {}});
        plugin.tolerate(&mut pod);
        let first = json!({"key": NOT_READY, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": 300});
        assert_eq!(pod["spec"]["tolerations"][0], first);
        let second = &pod["spec"]["tolerations"][1];
        assert_eq!(second["key"], UNREACHABLE);
        assert_eq!(second["tolerationSeconds"], -1);
        let once = pod.clone();
        plugin.tolerate(&mut pod);
        assert_eq!(pod, once);
        let stubborn = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        let mut pod = stubborn.clone();
        plugin.tolerate(&mut pod);
        assert_eq!(pod, stubborn);
    }
}
