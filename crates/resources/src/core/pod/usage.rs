//! The requests and limits of a pod.
//!
//! Init containers run one after the other before the others, so of them the largest counts, unless it goes on
//! running beside them. What the pod says for all its containers together counts instead of theirs.

use ringwatch_apimachinery::path::{get, list, text};
use serde_json::Value;

use crate::ResourceList;

/// The choice between the requests and the limits of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestsOrLimits {
    /// The `requests` of containers.
    Requests,
    /// The `limits` of containers.
    Limits,
}

impl RequestsOrLimits {
    /// Returns the name of the member of `resources`.
    pub fn member(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// Returns the requests or limits of a container.
pub fn container_resources(container: &Value, kind: RequestsOrLimits) -> ResourceList {
    ResourceList::read(&container["resources"][kind.member()])
}

/// Returns the requests or limits of a pod as its author has set them: those at pod level, or those of its containers.
#[must_use]
pub fn resources_without_overhead(pod: &Value, kind: RequestsOrLimits) -> ResourceList {
    let mut sum = resources_of_containers(&pod["spec"], kind);
    for (name, amount) in ResourceList::read(&pod["spec"]["resources"][kind.member()]).iter() {
        sum.set(name, amount);
    }
    sum
}

/// Returns the requests or limits of all containers in the spec of a pod.
pub(crate) fn resources_of_containers(spec: &Value, kind: RequestsOrLimits) -> ResourceList {
    let mut sum = ResourceList::default();
    for container in list(spec, "containers") {
        sum.add(&container_resources(container, kind));
    }
    let (mut beside, mut before) = (ResourceList::default(), ResourceList::default());
    for container in list(spec, "initContainers") {
        let own = container_resources(container, kind);
        let runs_on = text(container, "restartPolicy") == "Always";
        if runs_on {
            sum.add(&own);
            beside.add(&own);
        }
        // Of what the container does not name, `before` has as much as those beside it since the last of them came.
        for (name, amount) in own.iter() {
            let needed = match beside.get(name) {
                Some(beside) if runs_on => beside,
                Some(beside) => amount.plus(beside),
                None => amount,
            };
            before.raise_one(name, needed);
        }
    }
    sum.raise(&before);
    sum
}

/// Returns the requests or limits of a pod.
pub fn pod_resources(pod: &Value, kind: RequestsOrLimits) -> ResourceList {
    let mut sum = resources_without_overhead(pod, kind);
    let overhead = get(pod, "spec.overhead")
        .map(ResourceList::read)
        .unwrap_or_default();
    let known = sum.clone();
    sum.add(
        &overhead.only(|name, _| kind == RequestsOrLimits::Requests || known.get(name).is_some()),
    );
    sum
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_comes_to_its_containers_or_to_what_goes_before_them() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let sidecar =
            |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        let cpu = |spec: Value| {
            pod_resources(&json!({"spec": spec}), RequestsOrLimits::Requests).to_string()
        };
        assert_eq!(
            cpu(json!({"containers": [container("1"), container("500m"), {}]})),
            "cpu=1500m"
        );
        let of = |init: Value| cpu(json!({"containers": [container("1")], "initContainers": init}));
        assert_eq!(of(json!([container("3"), container("2")])), "cpu=3");
        assert_eq!(of(json!([sidecar("1"), container("2")])), "cpu=3");
        assert_eq!(of(json!([container("2"), sidecar("3")])), "cpu=4");
        assert_eq!(
            cpu(
                json!({"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}})
            ),
            "cpu=5"
        );
        let limits = json!({"containers": [{"resources": {"limits": {"cpu": "1"}}}],
            "overhead": {"cpu": "1", "memory": "1Mi"}});
        let limits = pod_resources(&json!({"spec": limits}), RequestsOrLimits::Limits);
        assert_eq!(limits.to_string(), "cpu=2");
    }
}
