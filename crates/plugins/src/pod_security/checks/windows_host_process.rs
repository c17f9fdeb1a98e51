//! Pods and containers may not run as processes of a Windows node.

use super::violation::parts;
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, SecurityScope};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "windowsHostProcess",
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision::since(0, check)],
};

fn check(pod: CheckedPod<'_>) -> Option<Violation> {
    let options = pod.settings("windowsOptions");
    let bad = options.filter(|(_, options)| options["hostProcess"] == true);
    let bad: Vec<SecurityScope<'_>> = bad.map(|(part, _)| part).collect();
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "hostProcess",
        format!(
            "{} must not set securityContext.windowsOptions.hostProcess=true",
            parts(&bad)
        ),
    ))
}
