//! The status of a pod as a kubelet writes it, step by step.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use ringwatch_apimachinery::accessor::{self, format_time};
use ringwatch_apimachinery::path;
use serde_json::{Value, json};

use crate::pods;

/// The beginning of the ids of pretended containers, which tells them from those of a test.
pub(super) const CONTAINER_PREFIX: &str = "test-cluster://";

/// The reason of a pod that is not ready since its containers are not.
const CONTAINERS: &str = "ContainersNotReady";

/// The reason of a pod that is not ready since its readiness gates are not open.
const GATES: &str = "ReadinessGatesNotReady";

/// The reason of a pod whose containers have ended well.
const COMPLETED: &str = "PodCompleted";

/// The reason of a pod whose containers were killed.
const FAILED: &str = "PodFailed";

/// The state of a condition: true, or false with the reason and a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConditionState<'a> {
    holds: bool,
    why: Option<(&'a str, &'a str)>,
}

impl<'a> ConditionState<'a> {
    const YES: Self = Self {
        holds: true,
        why: None,
    };

    pub(super) fn no(reason: &'a str, message: &'a str) -> Self {
        Self {
            holds: false,
            why: Some((reason, message)),
        }
    }
}

/// Returns true if a pod ends once its containers have.
pub(super) fn is_to_end(pod: &Value) -> bool {
    matches!(path::text(pod, "spec.restartPolicy"), "Never" | "OnFailure")
}

/// Has the containers of a pod run, which has this address on a host with that one. They are not ready.
pub(super) fn start(pod: &mut Value, (address, host): (&str, &str), now: Timestamp) {
    let since = format_time(now);
    let containers = statuses(pod, "containers", |_, _| running(&since));
    let inits = statuses(pod, "initContainers", |container, id| {
        if is_sidecar(container) {
            running(&since)
        } else {
            terminated(&since, (0, "Completed"), &since, id)
        }
    });
    let names = not_ready(pod);
    let status = &mut pod["status"];
    status["phase"] = "Running".into();
    status["startTime"] = since.into();
    status["podIP"] = address.into();
    status["podIPs"] = json!([{ "ip": address }]);
    status["hostIP"] = host.into();
    status["hostIPs"] = json!([{ "ip": host }]);
    status["containerStatuses"] = containers.into();
    if !inits.is_empty() {
        status["initContainerStatuses"] = inits.into();
    }
    note(pod, "PodReadyToStartContainers", ConditionState::YES, now);
    note(pod, "Initialized", ConditionState::YES, now);
    let waiting = ConditionState::no(CONTAINERS, &names);
    note(pod, "Ready", waiting, now);
    note(pod, "ContainersReady", waiting, now);
    note(pod, "PodScheduled", ConditionState::YES, now);
    observe_pod(pod);
}

/// Makes the containers of a pod ready, and the pod if its gates are open.
pub(super) fn make_ready(pod: &mut Value, now: Timestamp) {
    let statuses = pod["status"]["containerStatuses"].as_array_mut();
    for status in statuses.into_iter().flatten() {
        status["ready"] = true.into();
    }
    note(pod, "ContainersReady", ConditionState::YES, now);
    renew(pod, now);
}

/// Notes again if a pod is ready, unless somebody else has said so, and which generation of it was seen.
pub(super) fn renew(pod: &mut Value, now: Timestamp) {
    let are_ready =
        pods::condition(pod, "ContainersReady").is_some_and(|it| it["status"] == "True");
    let is_own = pods::condition(pod, "Ready").is_some_and(|it| {
        it["status"] == "True" || it["reason"] == CONTAINERS || it["reason"] == GATES
    });
    if are_ready && is_own {
        let closed = closed_gates(pod);
        let state = if closed.is_empty() {
            ConditionState::YES
        } else {
            ConditionState::no(GATES, &closed)
        };
        note(pod, "Ready", state, now);
    }
    observe_pod(pod);
}

/// Ends the containers of a pod well.
pub(super) fn end(pod: &mut Value, now: Timestamp) {
    stop(pod, "Succeeded", (0, "Completed"), COMPLETED, now);
}

/// Ends the containers of a pod as if they were killed.
pub(super) fn kill(pod: &mut Value, now: Timestamp) {
    stop(pod, "Failed", (137, "Error"), FAILED, now);
}

/// Returns when the time is over for which a pod may run; `None` if it may for ever.
pub(super) fn deadline(pod: &Value) -> Option<Timestamp> {
    let seconds = path::get(pod, "spec.activeDeadlineSeconds")?.as_i64()?;
    let start = path::text(pod, "status.startTime").parse().ok()?;
    Some(accessor::later(start, seconds))
}

/// Kills the containers of a pod whose time is over.
pub(super) fn expire(pod: &mut Value, now: Timestamp) {
    kill(pod, now);
    pod["status"]["reason"] = "DeadlineExceeded".into();
    pod["status"]["message"] =
        "Pod was active on the node longer than the specified deadline".into();
}

fn stop(pod: &mut Value, phase: &str, exit: (i32, &str), reason: &str, now: Timestamp) {
    let end = format_time(now);
    for member in ["containerStatuses", "initContainerStatuses"] {
        let statuses = pod["status"][member].as_array_mut();
        for status in statuses.into_iter().flatten() {
            let start = path::text(status, "state.running.startedAt").to_owned();
            if start.is_empty() {
                continue;
            }
            let id = path::text(status, "containerID").to_owned();
            status["ready"] = false.into();
            status["started"] = false.into();
            status["state"] = terminated(&start, exit, &end, &id);
        }
    }
    pod["status"]["phase"] = phase.into();
    for kind in ["PodReadyToStartContainers", "Ready", "ContainersReady"] {
        note(pod, kind, ConditionState::no(reason, ""), now);
    }
}

/// Sets a condition of a pod, whose time is that of its last transition.
pub(super) fn note(pod: &mut Value, kind: &str, state: ConditionState<'_>, now: Timestamp) {
    let status = if state.holds { "True" } else { "False" };
    let found = pods::condition(pod, kind).cloned();
    let mut condition = found.unwrap_or_else(|| json!({"type": kind, "lastProbeTime": null}));
    if condition["status"] != status {
        condition["status"] = status.into();
        condition["lastTransitionTime"] = format_time(now).into();
    }
    let (reason, message) = state.why.unwrap_or_default();
    for (member, text) in [("reason", reason), ("message", message)] {
        if text.is_empty() {
            drop(path::remove(&mut condition, member));
        } else {
            condition[member] = text.into();
        }
    }
    observe(&pod["metadata"], &mut condition);
    let conditions = &mut pod["status"]["conditions"];
    let Some(conditions) = conditions.as_array_mut() else {
        *conditions = json!([condition]);
        return;
    };
    match conditions.iter_mut().find(|it| it["type"] == kind) {
        Some(found) => *found = condition,
        None => conditions.push(condition),
    }
}

fn observe_pod(pod: &mut Value) {
    let metadata = pod["metadata"].clone();
    observe(&metadata, &mut pod["status"]);
}

/// Notes the generation of a pod of which something was written.
fn observe(metadata: &Value, written: &mut Value) {
    if metadata["generation"].is_number() {
        written["observedGeneration"] = metadata["generation"].clone();
    }
}

/// Returns the statuses of these containers of a pod. `state` has the state of one, of which the id is given.
fn statuses(pod: &Value, member: &str, state: impl Fn(&Value, &str) -> Value) -> Vec<Value> {
    let uid = accessor::text(pod, "uid");
    let containers = path::list(&pod["spec"], member).iter();
    let statuses = containers.map(|container| {
        let image = container["image"].as_str().unwrap_or_default();
        let name = container["name"].as_str().unwrap_or_default();
        let id = format!("{CONTAINER_PREFIX}{uid}/{name}");
        let state = state(container, &id);
        let runs = state["running"].is_object();
        json!({
            "name": name,
            "image": image,
            "imageID": format!("{CONTAINER_PREFIX}{image}"),
            "containerID": id,
            "restartCount": 0,
            // An init container that has ended is ready, and so is one that runs beside the others.
            "ready": member == "initContainers",
            "started": runs,
            "state": state,
        })
    });
    statuses.collect()
}

fn running(since: &str) -> Value {
    json!({"running": {"startedAt": since}})
}

fn terminated(start: &str, (code, reason): (i32, &str), end: &str, id: &str) -> Value {
    json!({"terminated": {
        "containerID": id,
        "exitCode": code,
        "reason": reason,
        "startedAt": start,
        "finishedAt": end,
    }})
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// Returns the message that all containers are not ready, in Go's form of a list.
fn not_ready(pod: &Value) -> String {
    let containers = path::list(pod, "spec.containers").iter();
    let names: Vec<&str> = containers.filter_map(|it| it["name"].as_str()).collect();
    format!("containers with unready status: [{}]", names.join(" "))
}

/// Returns the message about readiness gates that are not open; empty if all are.
fn closed_gates(pod: &Value) -> String {
    let mut closed = Vec::new();
    for gate in path::list(pod, "spec.readinessGates") {
        let kind = gate["conditionType"].as_str().unwrap_or_default();
        match pods::condition(pod, kind) {
            None => closed.push(format!(
                "corresponding condition of pod readiness gate {kind:?} does not exist."
            )),
            Some(condition) if condition["status"] != "True" => closed.push(format!(
                "the status of pod readiness gate {kind:?} is not \"True\", but {}",
                condition["status"].as_str().unwrap_or_default()
            )),
            Some(_) => {}
        }
    }
    closed.join(", ")
}
