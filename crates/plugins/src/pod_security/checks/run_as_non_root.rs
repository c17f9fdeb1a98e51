//! Pods or their containers have to set `runAsNonRoot=true`; since 1.35 not in a user namespace of the pod's own.

use super::violation::{containers, parts};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, SecurityScope};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "runAsNonRoot",
    level: Level::Restricted,
    replaces: None,
    revisions: &[
        Revision::since(0, check),
        Revision::since(35, check).unless(|pod| pod.has_own_users()),
    ],
};

const REASON: &str = "runAsNonRoot != true";

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let settings = pod.settings("runAsNonRoot");
    let as_root = settings.filter(|(_, value)| *value == false);
    let as_root: Vec<SecurityScope<'_>> = as_root.map(|(part, _)| part).collect();
    if !as_root.is_empty() {
        let detail = format!(
            "{} must not set securityContext.runAsNonRoot=false",
            parts(&as_root)
        );
        return Some(Violation::new(REASON, detail));
    }
    if pod.spec["securityContext"]["runAsNonRoot"] == true {
        return None;
    }
    let unset = pod.containers_where(|it| it.setting("runAsNonRoot").is_null());
    if unset.is_empty() {
        return None;
    }
    Some(Violation::new(
        REASON,
        format!(
            "pod or {} must set securityContext.runAsNonRoot=true",
            containers(&unset)
        ),
    ))
}
