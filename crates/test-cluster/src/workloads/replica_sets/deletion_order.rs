//! The order in which a set deletes pods when it has too many: those first of which least is lost.
//!
//! Source of the semantics: `ActivePodsWithRanks` of `pkg/controller/controller_utils.go`. There, pods whose ages are
//! about equal are ordered by uid before their restarts are compared, but only if the ages are not quite equal, which
//! is no order of more than two pods. Here restarts are compared in both cases.

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;
use ringwatch_apimachinery::{accessor, path};
use serde_json::Value;

use crate::owned::controller_of;
use crate::pods;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The order of pods, given the pods around them.
#[derive(Debug)]
pub(super) struct DeletionOrder {
    /// Number of related pods on each node.
    on_node: HashMap<String, usize>,
    now: Timestamp,
}

/// The place of a pod, in the order of what is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeletionPlace {
    has_node: bool,
    phase: u8,
    is_ready: bool,
    cost: i32,
    neighbours: Reverse<usize>,
    ready_for: Age,
    restarts: Reverse<RestartCounts>,
    age: Age,
    uid: String,
}

/// The age of something, in powers of two of a nanosecond, so that what is about as old counts as equal. What has no
/// time is youngest.
type Age = Option<i64>;

/// The most restarts of a container of a pod, and of one that runs beside the others.
type RestartCounts = (i64, i64);

impl DeletionOrder {
    /// Makes the order among these pods of a namespace. Related are those whose controller's uid is.
    pub(super) fn new(all: &[Value], is_related: impl Fn(&str) -> bool, now: Timestamp) -> Self {
        let mut on_node = HashMap::new();
        for pod in all.iter().filter(|pod| pods::is_active(pod)) {
            let uid = controller_of(pod).and_then(|it| it["uid"].as_str());
            if uid.is_some_and(&is_related) {
                *on_node.entry(node(pod).to_owned()).or_default() += 1;
            }
        }
        Self { on_node, now }
    }

    /// Returns the place of a pod. The first is deleted first.
    pub(super) fn place(&self, pod: &Value) -> DeletionPlace {
        let ready = pods::condition(pod, "Ready").filter(|it| it["status"] == "True");
        let neighbours = self.on_node.get(node(pod)).copied();
        DeletionPlace {
            has_node: !node(pod).is_empty(),
            phase: match path::text(pod, "status.phase") {
                "Unknown" => 1,
                "Running" => 2,
                _ => 0,
            },
            is_ready: ready.is_some(),
            cost: cost(pod),
            neighbours: Reverse(neighbours.unwrap_or_default()),
            ready_for: self.age(ready.and_then(|it| it["lastTransitionTime"].as_str())),
            restarts: Reverse(restarts(pod)),
            age: self.age(Some(accessor::text(pod, "creationTimestamp"))),
            uid: accessor::text(pod, "uid").to_owned(),
        }
    }

    fn age(&self, since: Option<&str>) -> Age {
        let since: Timestamp = since?.parse().ok()?;
        let age = self.now.as_nanosecond() - since.as_nanosecond();
        let age = u128::try_from(age).unwrap_or_default();
        Some(age.checked_ilog2().map_or(-1, i64::from))
    }
}

fn node(pod: &Value) -> &str {
    path::text(pod, "spec.nodeName")
}

/// Returns the cost of a pod's deletion in comparison with others. A text that is no number costs nothing.
fn cost(pod: &Value) -> i32 {
    let cost = pod["metadata"]["annotations"][COST].as_str();
    let cost = cost.filter(|it| !it.starts_with(['+', '0']));
    cost.and_then(|it| it.parse().ok()).unwrap_or_default()
}

fn restarts(pod: &Value) -> RestartCounts {
    let stays = |name: &Value| {
        let mut containers = path::list(pod, "spec.initContainers").iter();
        containers.any(|it| it["name"] == *name && it["restartPolicy"] == "Always")
    };
    let restarts = |status: &Value| status["restartCount"].as_i64();
    let containers = path::list(pod, "status.containerStatuses").iter();
    let sidecars = path::list(pod, "status.initContainerStatuses").iter();
    let sidecars = sidecars.filter(|it| stays(&it["name"]));
    (
        containers.filter_map(restarts).max().unwrap_or_default(),
        sidecars.filter_map(restarts).max().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a pod that is deleted last, changed by what the pointers name.
    fn pod(name: &str, changes: &[(&str, Value)]) -> Value {
        let mut pod = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"controller.kubernetes.io/pod-deletion-cost": "0"},
                "ownerReferences": [{"uid": "set", "controller": true}]},
            "spec": {"nodeName": name,
                "initContainers": [{"name": "beside", "restartPolicy": "Always"}, {"name": "before"}]},
            "status": {"phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "containerStatuses": [{"name": "a", "restartCount": 0}, {"name": "b", "restartCount": 0}],
                "initContainerStatuses": [{"name": "beside", "restartCount": 0}, {"name": "before", "restartCount": 0}]},
        });
        for (pointer, value) in changes {
            *pod.pointer_mut(pointer).expect("it is there") = value.clone();
        }
        pod
    }

    fn sorted(mut pods: Vec<Value>) -> Vec<String> {
        let now = "2026-01-01T01:00:00Z".parse().expect("a time");
        let order = DeletionOrder::new(&pods, |uid| uid == "set", now);
        pods.sort_by_cached_key(|pod| order.place(pod));
        let names = pods.iter().map(|it| accessor::text(it, "name").to_owned());
        names.collect()
    }

    #[test]
    fn each_reason_to_delete_a_pod_first_outweighs_those_after_it() {
        let cost = "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost";
        let since = "/status/conditions/0/lastTransitionTime";
        let restarts = "/status/containerStatuses/1/restartCount";
        let beside = "/status/initContainerStatuses/0/restartCount";
        let created = "/metadata/creationTimestamp";
        let young = || json!("2026-01-01T00:59:00Z");
        let dear = || (cost, json!("9"));
        let pods = vec![
            pod("z", &[]),
            pod("young", &[(created, young())]),
            pod("restarted-beside", &[(beside, json!(1))]),
            pod("restarted", &[(restarts, json!(1))]),
            pod("lately-ready", &[(since, young())]),
            pod("crowd-1", &[("/spec/nodeName", json!("crowd"))]),
            pod("crowd-2", &[("/spec/nodeName", json!("crowd"))]),
            pod("cheap", &[(cost, json!("-1"))]),
            pod(
                "not-ready",
                &[("/status/conditions/0/status", json!("False")), dear()],
            ),
            pod("unknown", &[("/status/phase", json!("Unknown")), dear()]),
            pod("pending", &[("/status/phase", json!("Pending")), dear()]),
            pod("no-node", &[("/spec/nodeName", json!("")), dear()]),
        ];
        let mut expected: Vec<_> = pods
            .iter()
            .rev()
            .map(|it| accessor::text(it, "name").to_owned())
            .collect();
        // Those that differ in nothing else go by uid.
        expected.swap(5, 6);
        assert_eq!(sorted(pods), expected);
    }

    #[test]
    fn pods_that_are_about_as_old_go_by_uid() {
        let created = "/metadata/creationTimestamp";
        let at = |time: &str| [(created, json!(time))];
        let pods = vec![
            pod("b", &at("2026-01-01T00:00:10Z")),
            pod("a", &at("2026-01-01T00:00:00Z")),
            pod("c", &at("2026-01-01T00:00:20Z")),
        ];
        assert_eq!(sorted(pods), ["a", "b", "c"]);
    }

    #[test]
    fn a_cost_that_is_no_number_is_none() {
        let cost = |text: &str| {
            cost(
                &json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": text}}}),
            )
        };
        let costs = ["7", "-7", "+7", "07", "0", "x", "2147483648"].map(cost);
        assert_eq!(costs, [7, -7, 0, 0, 0, 0, 0]);
    }
}
