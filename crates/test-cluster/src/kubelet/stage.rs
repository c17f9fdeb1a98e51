//! The stage of a pod: what this kubelet has written about it last, as its status shows.

use ringwatch_apimachinery::path;
use serde_json::Value;

use super::pod_status::CONTAINER_PREFIX;

/// The last step of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// None: nobody has written about it.
    New,
    /// Its containers run.
    Started,
    /// Its containers are ready.
    Ready,
    /// Its containers have ended.
    Ended,
    /// One that was not written here, or that somebody has changed.
    Others,
}

impl Stage {
    /// Returns the stage of a pod.
    pub(super) fn of(pod: &Value) -> Self {
        let statuses = path::list(pod, "status.containerStatuses");
        let is_untouched = statuses.is_empty()
            && path::text(pod, "status.startTime").is_empty()
            && path::text(pod, "status.podIP").is_empty();
        match path::text(pod, "status.phase") {
            "" | "Pending" if is_untouched => Self::New,
            "Succeeded" | "Failed" => Self::Ended,
            "Running" if !statuses.is_empty() && statuses.iter().all(runs) => {
                let ready = statuses.iter().filter(|it| it["ready"] == true).count();
                match ready {
                    0 => Self::Started,
                    all if all == statuses.len() => Self::Ready,
                    _ => Self::Others,
                }
            }
            _ => Self::Others,
        }
    }
}

/// Returns true if a container runs, and was started here.
fn runs(status: &Value) -> bool {
    let id = path::text(status, "containerID");
    id.starts_with(CONTAINER_PREFIX) && !path::text(status, "state.running.startedAt").is_empty()
}
