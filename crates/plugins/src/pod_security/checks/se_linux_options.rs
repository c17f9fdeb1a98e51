//! SELinux types may only be those of containers, one more since 1.31; a user or role may not be set.

use std::collections::BTreeSet;

use super::violation::{parts, plural, quoted};
use super::{PodCheck, Revision, Violation};
use crate::pod_security::level::Level;
use crate::pod_security::pod::{CheckedPod, SecurityScope, text};

pub(super) const CHECK: PodCheck = PodCheck {
    id: "seLinuxOptions",
    level: Level::Baseline,
    replaces: None,
    revisions: &[
        Revision::since(0, |pod| check(pod, &SINCE_0)),
        Revision::since(31, |pod| check(pod, &SINCE_31)),
    ],
};

const SINCE_0: [&str; 4] = ["", "container_t", "container_init_t", "container_kvm_t"];

const SINCE_31: [&str; 5] = [
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];

fn check(pod: CheckedPod<'_>, allowed: &[&str]) -> Option<Violation> {
    let mut setters: Vec<SecurityScope<'_>> = Vec::new();
    let mut types = BTreeSet::new();
    let (mut sets_user, mut sets_role) = (false, false);
    for (part, options) in pod.settings("seLinuxOptions") {
        let [named, user, role] = ["type", "user", "role"].map(|it| text(&options[it]));
        let is_allowed = allowed.contains(&named);
        if !is_allowed {
            types.insert(named);
        }
        sets_user |= !user.is_empty();
        sets_role |= !role.is_empty();
        if !is_allowed || !user.is_empty() || !role.is_empty() {
            setters.push(part);
        }
    }
    if setters.is_empty() {
        return None;
    }
    let mut faults = Vec::new();
    if !types.is_empty() {
        let word = plural(types.len(), "type", "types");
        faults.push(format!("{word} {}", quoted(types)));
    }
    if sets_user {
        faults.push("user may not be set".to_owned());
    }
    if sets_role {
        faults.push("role may not be set".to_owned());
    }
    Some(Violation::new(
        "seLinuxOptions",
        format!(
            "{} set forbidden securityContext.seLinuxOptions: {}",
            parts(&setters),
            faults.join("; ")
        ),
    ))
}
