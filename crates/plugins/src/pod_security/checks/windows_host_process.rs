//! Pods and containers may not run as processes of a Windows node.

use super::violation::parts;
use super::{Check, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{Part, Pod};

pub(super) const CHECK: Check = Check {
    id: "windowsHostProcess",
    level: Level::Baseline,
    replaces: None,
    revisions: &[Revision {
        since: 0,
        run: check,
    }],
};

fn check(pod: Pod<'_>) -> Option<Violation> {
    let options = pod.settings("windowsOptions");
    let bad = options.filter(|(_, options)| options["hostProcess"] == true);
    let bad: Vec<Part<'_>> = bad.map(|(part, _)| part).collect();
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
