//! Nodes. Unlike other kinds, a node may be created with its status.

pub(crate) mod table;
pub(crate) mod validation;

use ringwatch_apimachinery::path::{get, keep, list, set};
use ringwatch_registry::RequestContext;
use ringwatch_registry::subresource::{SubresourceMetadata, SubresourceStrategy};
use serde_json::{Value, json};

use crate::strategy::generic::drop_unless_there;
use crate::strategy::kind_hooks::KindHooks;
use crate::validation::{Field, address_warnings, found_in_change};

/// The fields of the dynamic configuration of kubelets, which Kubernetes has no more.
pub(super) const DYNAMIC: &[&str] = &["spec.configSource", CONFIG];
const CONFIG: &str = "status.config";

/// The behaviour of nodes: pairs of pod CIDR fields, and a status that is written through its subresource.
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
    }

    /// Follows `nodeWarnings`.
    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        let node = Field::root(object);
        if node.at("spec.configSource").is_set() {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }
        if !node.at("spec.externalID").is_empty() {
            let why = "this field is deprecated, and is unused by Kubernetes";
            warnings.push(format!("spec.externalID: {why}"));
        }
        for cidr in node.items("spec.podCIDRs") {
            address_warnings::cidr(&cidr, &mut warnings);
        }
        warnings
    }
}

/// Returns the strategy of the status subresource, which nodes write.
pub(super) fn status() -> SubresourceStrategy {
    SubresourceStrategy::new("status", SubresourceMetadata::Free)
        .finish(|_, object, old| drop_unless_there(object, old, &[CONFIG]))
        .validate_update(|object, old| found_in_change(validation::node_update, object, old))
}

#[cfg(test)]
mod tests {
    use ringwatch::clock::Clock;
    use ringwatch_apimachinery::User;
    use ringwatch_registry::Strategy;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_keeps_its_status() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let node = json!({"spec": {}, "status": {"capacity": {"cpu": "4"}}});
        let mut update = json!({"spec": {}, "status": {}});
        Nodes.prepare_for_update(&context, &mut update, &node);
        assert_eq!(update, node);
    }

    #[test]
    fn the_status_of_what_is_gone_stays_where_it_is() {
        let context = RequestContext::new(User::default(), String::new(), Clock::real());
        let configured = json!({"status": {"config": {"error": "e"}, "phase": "Running"}});
        for (old, kept) in [(json!({"status": {}}), false), (configured.clone(), true)] {
            let mut update = configured.clone();
            status().prepare_for_update(&context, &mut update, &old);
            assert_eq!(update["status"].get("config").is_some(), kept, "{old}");
            assert_eq!(update["status"]["phase"], "Running");
        }
    }

    #[test]
    fn what_a_node_says_of_itself_is_checked() {
        let old = json!({"spec": {"podCIDRs": ["10.0.0.0/24"]}});
        let with = |status: Value| json!({"spec": old["spec"], "status": status});
        for (node, wrong) in [
            (
                with(json!({"declaredFeatures": ["A", "B/c1"], "capacity": {"cpu": "4"}})),
                0,
            ),
            (with(json!({"declaredFeatures": ["a"]})), 1),
            (with(json!({"declaredFeatures": ["B", "A"]})), 1),
            (with(json!({"declaredFeatures": ["A", "A"]})), 1),
            (with(json!({"declaredFeatures": ["A/"]})), 1),
            (with(json!({"capacity": {"cpu": "-1"}})), 1),
            (json!({"spec": {}}), 1),
        ] {
            let errors = Strategy::validate_update(&status(), &node, &old);
            assert_eq!(errors.len(), wrong, "{node}");
        }
    }
}
