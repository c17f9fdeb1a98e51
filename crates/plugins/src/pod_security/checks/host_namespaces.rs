//! Pods may not share the node's network, processes and IPC.

use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::CheckedPod;

pub(super) const CHECK: PodCheck = PodCheck {
    id: "hostNamespaces",
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision::since(0, check)],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared: Vec<String> = fields
        .filter(|field| pod.spec[field] == true)
        .map(|field| format!("{field}=true"))
        .collect();
    if shared.is_empty() {
        return None;
    }
    Some(Violation::new("host namespaces", shared.join(", ")))
}
