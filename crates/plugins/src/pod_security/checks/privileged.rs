//! Containers may not be privileged.

use super::violation::containers;
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::CheckedPod;

pub(super) const CHECK: PodCheck = PodCheck {
    id: "privileged",
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision::since(0, check)],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let bad = pod.containers_where(|it| it.setting("privileged") == true);
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "privileged",
        format!(
            "{} must not set securityContext.privileged=true",
            containers(&bad)
        ),
    ))
}
