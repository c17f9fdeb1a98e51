//! Pods may set only sysctls that are known to be safe, a set that has grown with versions.

use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, items, text};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "sysctls",
    level: Level::Baseline,
    replaces: None,
    revisions: &[
        Revision::since(0, |pod| check(pod, 0)),
        Revision::since(27, |pod| check(pod, 27)),
        Revision::since(29, |pod| check(pod, 29)),
        Revision::since(32, |pod| check(pod, 32)),
    ],
};

/// The safe sysctls, with the minor version since which they are allowed.
const SAFE: [(&str, u64); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

fn check(pod: CheckedPod<'_>, minor: u64) -> Option<Violation> {
    let is_safe = |name: &str| {
        SAFE.iter()
            .any(|(safe, since)| *safe == name && *since <= minor)
    };
    let set = items(&pod.spec["securityContext"]["sysctls"]);
    let forbidden: Vec<&str> = set
        .map(|it| text(&it["name"]))
        .filter(|name| !is_safe(name))
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    Some(Violation::new("forbidden sysctls", forbidden.join(", ")))
}
