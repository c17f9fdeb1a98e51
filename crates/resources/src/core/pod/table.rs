//! Table of Pods, whose Status column sums up the containers in one word.
//!
//! The word is the phase, unless something says more: the pod's own reason, an init container that has not completed,
//! a container that waits or has terminated, and above all that the pod is being deleted.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::table::{Column, RowCondition, TableConvertor, cells, field_docs, subject::RowSubject};

const COLUMNS: &[Column] = &[
    Column::NAME,
    Column::text(
        "Ready",
        "The aggregate readiness state of this pod for accepting traffic.",
    ),
    Column::text(
        "Status",
        "The aggregate status of the containers in this pod.",
    ),
    Column::text(
        "Restarts",
        "The number of times the containers in this pod have been restarted and when the last \
         container in this pod has restarted.",
    ),
    Column::AGE,
    Column::text("IP", field_docs::POD_IP).wide(),
    Column::text("Node", field_docs::POD_NODE_NAME).wide(),
    Column::text("Nominated Node", field_docs::POD_NOMINATED_NODE_NAME).wide(),
    Column::text("Readiness Gates", field_docs::POD_READINESS_GATES).wide(),
];

const NONE: &str = "<none>";

/// Table of Pods, whose rows have the condition `Completed` if the pod has ended.
pub(crate) static PODS: TableConvertor = TableConvertor {
    columns: COLUMNS,
    cells: row,
    condition: completed,
};

fn row(pod: &RowSubject<'_>) -> Vec<Value> {
    let containers = Containers::read(pod);
    let sidecars = pod.list("spec.initContainers").filter(is_sidecar).count();
    let total = pod.count("spec.containers") + sidecars;
    let address = pod.list("status.podIPs").next().map(|it| it.text("ip"));
    let address = address
        .filter(|address| !address.is_empty())
        .unwrap_or_else(|| pod.text_or("status.podIP", NONE));
    cells![
        pod.name(),
        format!("{}/{total}", containers.ready),
        containers.reason,
        containers.restarts.text(pod),
        pod.age(),
        address,
        pod.text_or("spec.nodeName", NONE),
        pod.text_or("status.nominatedNodeName", NONE),
        readiness_gates(pod),
    ]
}

/// Returns the condition `Completed` for a pod that has succeeded or failed.
fn completed(pod: &RowSubject<'_>) -> Option<RowCondition> {
    let (reason, message) = match pod.text("status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(RowCondition {
        kind: "Completed",
        status: "True",
        reason,
        message,
    })
}

/// The cells that sum up all containers of a pod: the ready ones, their restarts and the status.
struct Containers {
    ready: usize,
    restarts: Restarts,
    reason: String,
}

/// Number of restarts of containers, and the latest time at which one of these had terminated.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

/// The state of a pod's init containers.
#[derive(Default)]
struct Initialization {
    /// The status of a pod that is not initialized, such as `Init:0/2`; `None` if all init containers have completed.
    reason: Option<String>,
    /// Number of ready sidecars.
    ready: usize,
    /// The restarts of init containers, sidecars included.
    restarts: Restarts,
    /// The restarts of sidecars.
    sidecar_restarts: Restarts,
}

impl Containers {
    fn read(pod: &RowSubject<'_>) -> Self {
        let phase = pod.text("status.phase");
        let mut reason = pod.text_or("status.reason", phase).to_owned();
        if pod.list("status.conditions").any(|condition| {
            condition.text("type") == "PodScheduled"
                && condition.text("reason") == "SchedulingGated"
        }) {
            "SchedulingGated".clone_into(&mut reason);
        }
        let Initialization {
            reason: why,
            ready,
            restarts,
            sidecar_restarts,
        } = Initialization::read(pod);
        let initialized = why.is_none() || condition(pod, "Initialized") == Some("True");
        let mut all = Self {
            ready,
            restarts,
            reason: why.unwrap_or(reason),
        };
        if initialized {
            all.restarts = sidecar_restarts;
            all.look_at_running(pod);
        }
        if pod.is_being_deleted() {
            if pod.text("status.reason") == "NodeLost" {
                "Unknown".clone_into(&mut all.reason);
            } else if !matches!(phase, "Succeeded" | "Failed") {
                "Terminating".clone_into(&mut all.reason);
            }
        }
        all
    }

    /// Adds the regular containers. The first that waits or has terminated gives the status.
    fn look_at_running(&mut self, pod: &RowSubject<'_>) {
        let mut running = false;
        for container in pod.list("status.containerStatuses").rev() {
            self.restarts.add(&container);
            if let Some(why) = waiting(&container).or_else(|| ended(&container)) {
                self.reason = why;
            } else if container.boolean("ready") == Some(true) && container.has("state.running") {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" && running {
            let ready = condition(pod, "Ready") == Some("True");
            self.reason = if ready { "Running" } else { "NotReady" }.to_owned();
        }
    }
}

impl Initialization {
    /// Reads the init containers up to the first that has not completed, which gives the status.
    fn read(pod: &RowSubject<'_>) -> Self {
        let mut found = Self::default();
        let total = pod.count("spec.initContainers");
        let mut specs = HashMap::new();
        for spec in pod.list("spec.initContainers") {
            specs.entry(spec.text("name")).or_insert(spec);
        }
        for (place, container) in pod.list("status.initContainerStatuses").enumerate() {
            let spec = specs.get(container.text("name"));
            let sidecar = spec.is_some_and(is_sidecar);
            found.restarts.add(&container);
            if sidecar {
                found.sidecar_restarts.add(&container);
            }
            let terminated = container.has("state.terminated");
            if terminated && container.number("state.terminated.exitCode") == 0 {
                continue;
            }
            if sidecar && container.boolean("started") == Some(true) {
                found.ready += usize::from(container.boolean("ready") == Some(true));
                continue;
            }
            let why = waiting(&container).filter(|why| why != "PodInitializing");
            let why = ended(&container).or(why);
            let why = why.unwrap_or_else(|| format!("{place}/{total}"));
            found.reason = Some(format!("Init:{why}"));
            break;
        }
        found
    }
}

impl Restarts {
    fn add(&mut self, container: &RowSubject<'_>) {
        self.count += container.number("restartCount");
        let ended = container.time("lastState.terminated.finishedAt");
        self.last = self.last.max(ended);
    }

    fn text(&self, pod: &RowSubject<'_>) -> String {
        match self.last {
            Some(last) if self.count != 0 => format!("{} ({} ago)", self.count, pod.ago(last)),
            _ => self.count.to_string(),
        }
    }
}

/// Returns true if an init container is a sidecar, which runs on beside the regular containers.
fn is_sidecar(spec: &RowSubject<'_>) -> bool {
    spec.text("restartPolicy") == "Always"
}

/// Returns the reason why a container waits, if its status gives one.
fn waiting(container: &RowSubject<'_>) -> Option<String> {
    let why = container.text("state.waiting.reason");
    (!why.is_empty()).then(|| why.to_owned())
}

/// Returns the reason, signal or exit code with which a container terminated, if it has.
fn ended(container: &RowSubject<'_>) -> Option<String> {
    let ended = container.part(container.get("state.terminated")?);
    let (why, signal) = (ended.text("reason"), ended.number("signal"));
    Some(if !why.is_empty() {
        why.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", ended.number("exitCode"))
    })
}

/// Returns the status of the pod's condition of this type, if it has one.
fn condition<'a>(pod: &RowSubject<'a>, kind: &str) -> Option<&'a str> {
    let mut conditions = pod.list("status.conditions");
    let found = conditions.find(|condition| condition.text("type") == kind);
    found.map(|condition| condition.text("status"))
}

/// Returns how many of the pod's readiness gates are true, such as `1/2`; `<none>` if it has none.
fn readiness_gates(pod: &RowSubject<'_>) -> String {
    let gates = pod.list("spec.readinessGates");
    let open = gates.filter(|gate| condition(pod, gate.text("conditionType")) == Some("True"));
    match pod.count("spec.readinessGates") {
        0 => NONE.to_owned(),
        all => format!("{}/{all}", open.count()),
    }
}
