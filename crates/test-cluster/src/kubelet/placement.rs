//! Chooses the node of a pod: one that its selector and its affinity name, and whose taints it tolerates.
//!
//! Room is not counted, nor are other pods: spread, affinity between pods and priority choose nothing on one node.

use jiff::Timestamp;
use ringwatch::meta::LabelSelector;
use ringwatch_apimachinery::accessor::{self, is_terminating};
use ringwatch_apimachinery::{path, selector_text};
use serde_json::{Value, json};

use super::node;
use super::pod_status::{ConditionState, note};
use crate::pods;

/// The scheduler that this one stands for. Pods may name another, which a test runs.
const SCHEDULER_NAME: &str = "default-scheduler";

/// Returns true if a pod waits for this scheduler.
pub(super) fn is_to_be_placed(pod: &Value) -> bool {
    let scheduler = path::text(pod, "spec.schedulerName");
    scheduler == SCHEDULER_NAME
        && path::list(pod, "spec.schedulingGates").is_empty()
        && !is_terminating(pod)
        && !pods::has_ended(pod)
}

/// Returns the name of the node for a pod, the pretended one if that is possible; `None` if no node takes it.
pub(super) fn choose<'a>(pod: &Value, nodes: &'a [Value]) -> Option<&'a str> {
    let taking = nodes.iter().filter(|it| takes(it, pod));
    let taking = taking.map(|it| accessor::text(it, "name"));
    taking.min_by_key(|it| *it != node::NAME)
}

/// Notes that no node takes a pod, and why.
pub(super) fn refuse(pod: &mut Value, message: &str, now: Timestamp) {
    note(
        pod,
        "PodScheduled",
        ConditionState::no("Unschedulable", message),
        now,
    );
}

/// Returns true if that is noted already.
pub(super) fn is_refused(pod: &Value, message: &str) -> bool {
    let condition = pods::condition(pod, "PodScheduled");
    condition.is_some_and(|it| it["status"] == "False" && it["message"] == message)
}

/// Returns the message that none of these nodes takes a pod.
pub(super) fn refusal(pod: &Value, nodes: &[Value]) -> String {
    let all = nodes.len();
    if all == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    let unselected = nodes.iter().filter(|it| !is_selected(it, pod)).count();
    let reasons = [
        (
            all.saturating_sub(unselected),
            "node(s) had untolerated taint(s)",
        ),
        (
            unselected,
            "node(s) didn't match Pod's node affinity/selector",
        ),
    ];
    let reasons = reasons.iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = reasons
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    format!("0/{all} nodes are available: {}.", reasons.join(", "))
}

fn takes(node: &Value, pod: &Value) -> bool {
    !is_terminating(node) && is_selected(node, pod) && is_tolerated(node, pod)
}

/// Returns true if the selector of a pod and its affinity select a node.
fn is_selected(node: &Value, pod: &Value) -> bool {
    const TERMS: &str = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let labels = accessor::labels(node);
    let selector = selector_text::labels(&pod["spec"]["nodeSelector"]);
    let selector = LabelSelector::parse(&selector);
    if !selector.is_ok_and(|it| it.matches(labels.as_labels())) {
        return false;
    }
    let terms = path::list(pod, TERMS);
    terms.is_empty() || terms.iter().any(|it| meets(node, it))
}

/// Returns true if a node meets a term of an affinity. One without requirements is met by none.
fn meets(node: &Value, term: &Value) -> bool {
    let expressions = path::list(term, "matchExpressions");
    let fields = path::list(term, "matchFields");
    let labels = accessor::labels(node);
    let by_label = |it: &Value| {
        let selector = LabelSelector::parse(&requirement(it));
        selector.is_ok_and(|it| it.matches(labels.as_labels()))
    };
    let name = accessor::text(node, "name");
    let by_field = |it: &Value| {
        let has = path::list(it, "values").iter().any(|it| it == name);
        it["key"] == "metadata.name" && (it["operator"] == "In") == has
    };
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(by_label)
        && fields.iter().all(by_field)
}

/// Returns the text of a requirement. Those of nodes have two more operators than others.
fn requirement(expression: &Value) -> String {
    let sign = match expression["operator"].as_str() {
        Some("Gt") => '>',
        Some("Lt") => '<',
        _ => return selector_text::label_selector(&json!({"matchExpressions": [expression]})),
    };
    let key = expression["key"].as_str().unwrap_or_default();
    let value = expression["values"][0].as_str().unwrap_or_default();
    format!("{key}{sign}{value}")
}

/// Returns true if a pod tolerates the taints of a node that keep pods away.
fn is_tolerated(node: &Value, pod: &Value) -> bool {
    let unschedulable = json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
    let is_cordoned = path::get(node, "spec.unschedulable") == Some(&Value::Bool(true));
    let taints = path::list(node, "spec.taints").iter();
    let mut taints = taints.chain(is_cordoned.then_some(&unschedulable));
    taints.all(|taint| {
        let tolerations = path::list(pod, "spec.tolerations");
        taint["effect"] == "PreferNoSchedule" || tolerations.iter().any(|it| tolerates(it, taint))
    })
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (key, effect) = (text(&toleration["key"]), text(&toleration["effect"]));
    let exists = toleration["operator"] == "Exists";
    (effect.is_empty() || taint["effect"] == effect)
        && (key.is_empty() || taint["key"] == key)
        && (exists || (!key.is_empty() && text(&toleration["value"]) == text(&taint["value"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Vec<Value> {
        let node = |name: &str, number: &str, spec: Value| json!({"metadata": {"name": name, "labels": {"number": number}}, "spec": spec});
        vec![
            node("a", "1", json!({})),
            node(
                "b",
                "5",
                json!({"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}),
            ),
            node("c", "9", json!({"unschedulable": true})),
            node(node::NAME, "3", json!({})),
        ]
    }

    fn chosen(spec: Value) -> Option<String> {
        let nodes = nodes();
        choose(&json!({ "spec": spec }), &nodes).map(str::to_owned)
    }

    #[test]
    fn the_pretended_node_comes_first_and_selectors_before_it() {
        assert_eq!(chosen(json!({})).as_deref(), Some(node::NAME));
        let by = |number: &str| chosen(json!({"nodeSelector": {"number": number}}));
        assert_eq!(by("1").as_deref(), Some("a"));
        assert_eq!(by("5"), None, "it is tainted");
        assert_eq!(by("9"), None, "it is cordoned");
        assert_eq!(by("2"), None);
    }

    #[test]
    fn a_refusal_counts_the_nodes_that_do_not_take_a_pod() {
        let pod = json!({"spec": {"nodeSelector": {"number": "9"}}});
        assert_eq!(
            refusal(&pod, &nodes()),
            "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 node(s) didn't match Pod's node \
             affinity/selector."
        );
        assert_eq!(refusal(&pod, &[]), "no nodes available to schedule pods");
    }

    #[test]
    fn affinity_names_nodes_by_their_labels_or_their_name() {
        let term = |term: Value| {
            let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}});
            chosen(json!({"affinity": {"nodeAffinity": terms}}))
        };
        let less =
            json!({"matchExpressions": [{"key": "number", "operator": "Lt", "values": ["2"]}]});
        assert_eq!(term(less).as_deref(), Some("a"));
        let named = |operator: &str, name: &str| {
            term(
                json!({"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}),
            )
        };
        assert_eq!(named("In", "a").as_deref(), Some("a"));
        assert_eq!(named("NotIn", node::NAME).as_deref(), Some("a"));
        assert_eq!(named("In", "z"), None);
        assert_eq!(term(json!({})), None);
    }

    #[test]
    fn tolerations_open_nodes_with_taints() {
        let tolerating = |number: &str, toleration: Value| {
            chosen(json!({"nodeSelector": {"number": number}, "tolerations": [toleration]}))
        };
        let equal = |value: &str| json!({"key": "k", "value": value, "effect": "NoSchedule"});
        assert_eq!(tolerating("5", equal("v")).as_deref(), Some("b"));
        assert_eq!(tolerating("5", equal("w")), None);
        let all = json!({"operator": "Exists"});
        assert_eq!(tolerating("5", all.clone()).as_deref(), Some("b"));
        assert_eq!(tolerating("9", all).as_deref(), Some("c"));
    }
}
