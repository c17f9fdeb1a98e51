//! Containers may not use ports of the node.

use std::collections::BTreeSet;

use super::violation::{containers, plural};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, items};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "hostPorts",
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision::since(0, check)],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    // Kubernetes sorts the ports as text.
    let mut ports: BTreeSet<String> = BTreeSet::new();
    let bad = pod.containers_where(|container| {
        let used = items(container.member("ports")).filter_map(|it| it["hostPort"].as_i64());
        let used: Vec<String> = used
            .filter(|it| *it != 0)
            .map(|it| it.to_string())
            .collect();
        let uses = !used.is_empty();
        ports.extend(used);
        uses
    });
    if bad.is_empty() {
        return None;
    }
    let listed: Vec<&str> = ports.iter().map(String::as_str).collect();
    Some(Violation::new(
        "hostPort",
        format!(
            "{} {} {} {}",
            containers(&bad),
            plural(bad.len(), "uses", "use"),
            plural(ports.len(), "hostPort", "hostPorts"),
            listed.join(", ")
        ),
    ))
}
