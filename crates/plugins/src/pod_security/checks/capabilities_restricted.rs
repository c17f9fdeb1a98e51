//! Containers have to drop all capabilities, and may add NET_BIND_SERVICE alone; except on Windows since 1.25.

use std::collections::BTreeSet;

use super::violation::{containers, quoted};
use super::{PodCheck, Revision, Violation, capabilities_baseline};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, items, text};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "capabilities_restricted",
    level: Level::Restricted,
    replaces: Some(capabilities_baseline::ID),
    revisions: &[
        Revision::since(22, check),
        Revision::since(25, check).unless(|pod| pod.is_for_windows()),
    ],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let keeping = pod.containers_where(|container| {
        let mut dropped = items(&container.setting("capabilities")["drop"]);
        !dropped.any(|it| it == "ALL")
    });
    let mut forbidden = BTreeSet::new();
    let adding = pod.containers_where(|container| {
        let added = items(&container.setting("capabilities")["add"]).map(text);
        let others: Vec<&str> = added.filter(|it| *it != "NET_BIND_SERVICE").collect();
        forbidden.extend(others.iter().copied());
        !others.is_empty()
    });
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers(&keeping)
        ));
    }
    if !adding.is_empty() {
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adding),
            quoted(forbidden)
        ));
    }
    if details.is_empty() {
        return None;
    }
    Some(Violation::new(
        "unrestricted capabilities",
        details.join("; "),
    ))
}
