//! Containers have to set `allowPrivilegeEscalation=false`, except on Windows since 1.25.

use super::violation::containers;
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::CheckedPod;

pub(super) const CHECK: PodCheck = PodCheck {
    id: "allowPrivilegeEscalation",
    level: Level::Restricted,
    replaces: None,
    revisions: &[
        Revision::since(8, check),
        Revision::since(25, check).unless(|pod| pod.is_for_windows()),
    ],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let bad = pod.containers_where(|it| it.setting("allowPrivilegeEscalation") != false);
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "allowPrivilegeEscalation != false",
        format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            containers(&bad)
        ),
    ))
}
