//! The checks of the Pod Security Standards, in a file each, with the versions in which they apply.
//!
//! Ported from `policy/` of pod-security-admission, Kubernetes 1.36, where each check has a file of a similar name.

mod allow_privilege_escalation;
mod app_armor_profile;
mod capabilities_baseline;
mod capabilities_restricted;
mod host_namespaces;
mod host_path_volumes;
mod host_ports;
mod host_probes;
mod privileged;
mod proc_mount_baseline;
mod proc_mount_restricted;
mod restricted_volumes;
mod run_as_non_root;
mod run_as_user;
mod se_linux_options;
mod seccomp_profile_baseline;
mod seccomp_profile_restricted;
mod sysctls;
#[cfg(test)]
mod tests;
mod violation;
mod windows_host_process;

use super::level::{Level, StandardVersion};
use super::pod::CheckedPod;

pub(super) use violation::Violation;

/// A check of pods.
#[derive(Debug)]
pub(super) struct PodCheck {
    /// The name of the check in Kubernetes.
    id: &'static str,
    /// The least level that includes the check.
    level: Level,
    /// The name of the check of the baseline level that this one, of the restricted level, replaces with a stricter
    /// one.
    replaces: Option<&'static str>,
    /// The forms that the check has had, in the order of their versions.
    revisions: &'static [Revision],
}

/// A form of a check, which applies until the next one begins.
#[derive(Debug)]
struct Revision {
    /// The minor version with which it begins.
    since: u64,
    /// Returns true for pods that are not looked at.
    exempts: fn(CheckedPod<'_>) -> bool,
    /// Returns the violation of a pod; `None` if it is allowed.
    run: fn(CheckedPod<'_>) -> Option<Violation>,
}

impl Revision {
    /// Makes the form of all pods that begins with a minor version.
    const fn since(since: u64, run: fn(CheckedPod<'_>) -> Option<Violation>) -> Self {
        Self {
            since,
            exempts: |_| false,
            run,
        }
    }

    /// Leaves out the pods for which this holds.
    const fn unless(self, exempts: fn(CheckedPod<'_>) -> bool) -> Self {
        Self { exempts, ..self }
    }
}

/// The checks in the order in which violations are told: by level, then by name.
static CHECKS: [PodCheck; 19] = [
    app_armor_profile::CHECK,
    capabilities_baseline::CHECK,
    host_namespaces::CHECK,
    host_path_volumes::CHECK,
    host_ports::CHECK,
    host_probes::CHECK,
    privileged::CHECK,
    proc_mount_baseline::CHECK,
    se_linux_options::CHECK,
    seccomp_profile_baseline::CHECK,
    sysctls::CHECK,
    windows_host_process::CHECK,
    allow_privilege_escalation::CHECK,
    capabilities_restricted::CHECK,
    proc_mount_restricted::CHECK,
    restricted_volumes::CHECK,
    run_as_non_root::CHECK,
    run_as_user::CHECK,
    seccomp_profile_restricted::CHECK,
];

impl PodCheck {
    /// Returns the form of the check in a version; `None` if the check came later.
    fn revision(&self, version: StandardVersion) -> Option<&Revision> {
        let mut newest_first = self.revisions.iter().rev();
        newest_first.find(|it| version.includes(it.since))
    }

    /// Returns true if a stricter check replaces this one at a level.
    fn is_replaced(&self, level: Level, version: StandardVersion) -> bool {
        CHECKS.iter().any(|other| {
            other.level <= level
                && other.replaces == Some(self.id)
                && other.revision(version).is_some()
        })
    }
}

/// Returns the violations of a pod at a level, in the order of the checks.
pub(super) fn violations(
    level: Level,
    version: StandardVersion,
    pod: CheckedPod<'_>,
) -> Vec<Violation> {
    let included = CHECKS
        .iter()
        .filter(|it| it.level <= level && !it.is_replaced(level, version));
    let revisions = included.filter_map(|it| it.revision(version));
    let revisions = revisions.filter(|it| !(it.exempts)(pod));
    revisions.filter_map(|it| (it.run)(pod)).collect()
}
