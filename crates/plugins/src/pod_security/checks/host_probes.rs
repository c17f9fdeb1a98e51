//! Probes and lifecycle handlers may not name a host, since 1.34.

use std::collections::BTreeSet;

use serde_json::Value;

use super::violation::{containers, plural, quoted};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, Container, text};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "hostProbesAndHostLifecycle",
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision::since(34, check)],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let mut hosts = BTreeSet::new();
    let bad = pod.containers_where(|container| {
        let named = hosts_of(container);
        hosts.extend(named.iter().copied());
        !named.is_empty()
    });
    // Unlike other checks, this one sorts the containers and names each once.
    let bad: BTreeSet<&str> = bad.into_iter().collect();
    let bad: Vec<&str> = bad.into_iter().collect();
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "probe or lifecycle host",
        format!(
            "{} {} {} {}",
            containers(&bad),
            plural(bad.len(), "uses", "use"),
            plural(
                hosts.len(),
                "probe or lifecycle host",
                "probe or lifecycle hosts"
            ),
            quoted(hosts)
        ),
    ))
}

/// Returns the hosts that a container's probes and lifecycle handlers name.
fn hosts_of(container: Container<'_>) -> Vec<&str> {
    let lifecycle = container.member("lifecycle");
    let handlers: [&Value; 5] = [
        container.member("livenessProbe"),
        container.member("readinessProbe"),
        container.member("startupProbe"),
        &lifecycle["postStart"],
        &lifecycle["preStop"],
    ];
    let hosts = handlers
        .into_iter()
        .flat_map(|handler| ["httpGet", "tcpSocket"].map(|action| text(&handler[action]["host"])));
    hosts.filter(|host| !host.is_empty()).collect()
}
