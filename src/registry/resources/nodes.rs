//! Nodes: a new one is not trusted with pods until something says that it is ready.

use serde_json::{Value, json};

use super::path::{get, keep, list, set, text};
use super::peculiar::Peculiar;
use crate::registry::RequestContext;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// What is peculiar about nodes.
#[derive(Debug)]
pub(super) struct Nodes;

impl Peculiar for Nodes {
    /// Unlike others, a node brings its status when it is created.
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        let mut taints = list(object, "spec.taints").to_vec();
        let tainted = taints
            .iter()
            .any(|taint| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule");
        if !tainted {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
            set(object, "spec.taints", Value::Array(taints));
        }
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        // The ranges of a node are given to it once.
        for path in ["spec.podCIDR", "spec.podCIDRs"] {
            if get(object, path).is_none() {
                keep(object, old, path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::registry::User;

    #[test]
    fn a_new_node_is_tainted_and_keeps_its_status() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let mut node = json!({"spec": {}, "status": {"capacity": {"cpu": "4"}}});
        Nodes.prepare_for_create(&context, &mut node);
        assert_eq!(
            node,
            json!({"spec": {"taints": [{"key": NOT_READY, "effect": "NoSchedule"}]},
                "status": {"capacity": {"cpu": "4"}}})
        );
        let mut update = json!({"spec": {}, "status": {}});
        Nodes.prepare_for_update(&context, &mut update, &node);
        assert_eq!(update["status"], node["status"]);
    }
}
