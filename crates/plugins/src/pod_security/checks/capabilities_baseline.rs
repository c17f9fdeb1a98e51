//! Containers may add capabilities of the usual default set alone.

use std::collections::BTreeSet;

use super::violation::{containers, quoted};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, items, text};

pub(super) const ID: &str = "capabilities_baseline";

pub(super) const CHECK: PodCheck = PodCheck {
    id: ID,
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision::since(0, check)],
};

const ALLOWED: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let mut forbidden = BTreeSet::new();
    let bad = pod.containers_where(|container| {
        let added = items(&container.setting("capabilities")["add"]).map(text);
        let others: Vec<&str> = added.filter(|it| !ALLOWED.contains(it)).collect();
        forbidden.extend(others.iter().copied());
        !others.is_empty()
    });
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "non-default capabilities",
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&bad),
            quoted(forbidden)
        ),
    ))
}
