//! Nodes. Unlike other kinds, a node may be created with its status.

pub(crate) mod table;

use ringwatch_apimachinery::path::{get, keep, list, set};
use ringwatch_registry::RequestContext;
use serde_json::{Value, json};

use crate::strategy::kind_hooks::KindHooks;

/// The behaviour of nodes: pairs of pod CIDR fields, and a pod CIDR that stays once it is assigned.
#[derive(Debug)]
pub(super) struct Nodes;

impl KindHooks for Nodes {
    /// Makes `spec.podCIDR` and the first of `spec.podCIDRs` equal; if both are given and differ, `spec.podCIDR` wins.
    fn default(&self, object: &mut Value) {
        let first = list(object, "spec.podCIDRs").first().cloned();
        match (get(object, "spec.podCIDR").cloned(), first) {
            (None, Some(first)) => set(object, "spec.podCIDR", first),
            (Some(alone), first) if first.as_ref() != Some(&alone) => {
                set(object, "spec.podCIDRs", json!([alone]));
            }
            _ => {}
        }
    }

    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        keep(object, old, "status");
        // A node's pod CIDRs are assigned once.
        for path in ["spec.podCIDR", "spec.podCIDRs"] {
            if get(object, path).is_none() {
                keep(object, old, path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_keeps_its_status_and_ranges() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let node =
            json!({"spec": {"podCIDR": "10.0.0.0/24"}, "status": {"capacity": {"cpu": "4"}}});
        let mut update = json!({"spec": {}, "status": {}});
        Nodes.prepare_for_update(&context, &mut update, &node);
        assert_eq!(update, node);
    }
}
