//! Pods or their containers have to set a seccomp profile, the runtime's default or one of the node, since 1.19; except
//! on Windows since 1.25.

use super::violation::containers;
use super::{PodCheck, Revision, Violation, seccomp_profile_baseline as baseline};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, text};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "seccompProfile_restricted",
    level: Level::Restricted,
    replaces: Some(baseline::ID),
    revisions: &[
        Revision::since(19, check),
        Revision::since(25, check).unless(|pod| pod.is_for_windows()),
    ],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    if let Some(forbidden) = baseline::forbidden_types(pod) {
        return Some(forbidden);
    }
    let own = &pod.spec["securityContext"]["seccompProfile"];
    if baseline::is_allowed(text(&own["type"])) {
        return None;
    }
    let unset = pod.containers_where(|it| it.setting("seccompProfile").is_null());
    if unset.is_empty() {
        return None;
    }
    Some(Violation::new(
        baseline::REASON,
        format!(
            r#"pod or {} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost""#,
            containers(&unset)
        ),
    ))
}
