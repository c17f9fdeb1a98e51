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
        Revision {
            since: 8,
            run: check,
        },
        Revision {
            since: 25,
            run: check_unless_windows,
        },
    ],
};

fn check_unless_windows(pod: CheckedPod<'_>) -> Option<Violation> {
    if pod.is_for_windows() {
        None
    } else {
        check(pod)
    }
}

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
