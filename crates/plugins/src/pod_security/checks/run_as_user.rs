//! Pods and containers may not set `runAsUser=0`, since 1.23; since 1.35 they may in a user namespace of the pod's own.

use super::violation::parts;
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, SecurityScope};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "runAsUser",
    level: Level::Restricted,
    replaces: None,
    revisions: &[
        Revision::since(23, check),
        Revision::since(35, check).unless(|pod| pod.has_own_users()),
    ],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let settings = pod.settings("runAsUser");
    let root = settings.filter(|(_, user)| user.as_i64() == Some(0));
    let root: Vec<SecurityScope<'_>> = root.map(|(part, _)| part).collect();
    if root.is_empty() {
        return None;
    }
    Some(Violation::new(
        "runAsUser=0",
        format!("{} must not set runAsUser=0", parts(&root)),
    ))
}
