//! Containers may not unmask `/proc`; since 1.35 they may if the pod has a user namespace of its own.

use std::collections::BTreeSet;

use super::violation::{containers, quoted};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, text};

pub(super) const ID: &str = "procMount";

pub(super) const CHECK: PodCheck = PodCheck {
    id: ID,
    level: Level::Baseline,
    replaces: None,
    revisions: &[
        Revision::since(0, check),
        Revision::since(35, check).unless(|pod| pod.has_own_users()),
    ],
};

/// Refuses every mount but the default one.
pub(super) fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let mut mounts = BTreeSet::new();
    let bad = pod.containers_where(|container| {
        let mount = container.setting("procMount");
        let is_bad = !mount.is_null() && mount != "Default";
        if is_bad {
            mounts.insert(text(mount));
        }
        is_bad
    });
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "procMount",
        format!(
            "{} must not set securityContext.procMount to {}",
            containers(&bad),
            quoted(mounts)
        ),
    ))
}
