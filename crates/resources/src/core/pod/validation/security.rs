//! The security contexts of pods and containers.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::json;

use super::windows;
use crate::validation::field::{Errors, Field};
use crate::validation::values::below;

/// Maximum length of the name of a sysctl, in bytes, and the pattern that Kubernetes shows for it.
const SYSCTL_BYTES_MAX: usize = 253;
const SYSCTL_FORM: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// The settings of semaphores, shared memory and messages.
const IPC_SETTINGS: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

/// Checks the security context of a pod. Follows `validatePodSpecSecurityContext`.
pub(super) fn of_pod(at: &Field<'_, '_>, errors: &mut Errors) {
    for member in ["fsGroup", "runAsUser", "runAsGroup"] {
        at.at(member).may_be_an_id(errors);
    }
    for group in at.items("supplementalGroups") {
        group.may_be_an_id(errors);
    }
    kernel_settings(at, errors);
    at.at("fsGroupChangePolicy")
        .may_be_one_of(&["Always", "OnRootMismatch"], errors);
    profiles(at, errors);
    at.at("supplementalGroupsPolicy")
        .may_be_one_of(&["Merge", "Strict"], errors);
    // The feature gate of the other policy, MountOption, is off in Kubernetes 1.36.
    at.at("seLinuxChangePolicy")
        .may_be_one_of(&["Recursive"], errors);
}

/// Checks the sysctls of a pod, of which each may occur once.
fn kernel_settings(at: &Field<'_, '_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for setting in at.items("sysctls") {
        let name = setting.at("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !is_kernel_setting(name.text()) {
            let why = format!(
                "must have at most {SYSCTL_BYTES_MAX} characters and match regex {SYSCTL_FORM}"
            );
            errors.push(name.invalid(why));
        } else if names.contains(name.text()) {
            errors.push(name.duplicate());
        }
        names.insert(name.text());
    }
}

/// Kernel settings of the pods of most controllers that would change the host.
pub(crate) fn host_settings_of_template(object: &Field<'_, '_>, errors: &mut Errors) {
    host_settings(&object.at("spec.template.spec"), errors);
}

/// Checks the host settings of a CronJob's pods.
pub(crate) fn host_settings_of_cron_job(object: &Field<'_, '_>, errors: &mut Errors) {
    host_settings(&object.at("spec.jobTemplate.spec.template.spec"), errors);
}

/// Checks the host settings of a PodTemplate.
pub(crate) fn host_settings_of_pod_template(object: &Field<'_, '_>, errors: &mut Errors) {
    host_settings(&object.at("template.spec"), errors);
}

/// Refuses privileged containers in the pods of most controllers.
pub(crate) fn unprivileged_template(object: &Field<'_, '_>, errors: &mut Errors) {
    unprivileged(&object.at("spec.template.spec"), errors);
}

/// Refuses privileged containers in a CronJob's pods.
pub(crate) fn unprivileged_cron_job(object: &Field<'_, '_>, errors: &mut Errors) {
    unprivileged(&object.at("spec.jobTemplate.spec.template.spec"), errors);
}

/// Refuses privileged containers in a PodTemplate.
pub(crate) fn unprivileged_pod_template(object: &Field<'_, '_>, errors: &mut Errors) {
    unprivileged(&object.at("template.spec"), errors);
}

/// Refuses privileged containers in a pod.
pub(crate) fn unprivileged_pod(object: &Field<'_, '_>, errors: &mut Errors) {
    unprivileged(&object.at("spec"), errors);
}

/// Refuses containers that are privileged, or on Windows processes of the host. Follows what `ValidateSecurityContext`
/// and `validateWindowsHostProcessPod` do without `--allow-privileged`.
fn unprivileged(spec: &Field<'_, '_>, errors: &mut Errors) {
    const HOST_PROCESS: &str = "securityContext.windowsOptions.hostProcess";
    let of_pod = spec.at(HOST_PROCESS);
    let mut has_host_process = false;
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.items(list) {
            let privileged = container.at("securityContext.privileged");
            if privileged.is_true() {
                errors.push(privileged.forbidden("disallowed by cluster policy"));
            }
            let own = container.at(HOST_PROCESS);
            has_host_process |= own.is_true() || (!own.is_set() && of_pod.is_true());
        }
    }
    if has_host_process {
        errors.push(spec.forbidden("hostProcess containers are disallowed by cluster policy"));
    }
}

/// Checks the sysctls of a pod, which must not belong to a namespace that the pod shares with the host. Follows
/// `ValidateHostSysctl`.
pub(super) fn host_settings(spec: &Field<'_, '_>, errors: &mut Errors) {
    for setting in spec.items("securityContext.sysctls") {
        let name = setting.at("name");
        let shared = namespace_switch(name.text()).filter(|it| spec.at(it).is_true());
        if let Some(switch) = shared {
            errors.push(name.invalid(format!("may not be specified when '{switch}' is true")));
        }
    }
}

/// Returns the member of a pod's spec that makes the pod share the namespace of a kernel setting with the host. A star
/// in the name stands for any rest.
fn namespace_switch(setting: &str) -> Option<&'static str> {
    let setting = setting.split('*').next().unwrap_or_default();
    // In names whose first separator is a slash, slashes separate, and points are parts of words.
    let separator = setting.find(['.', '/']).map(|at| &setting[at..=at]);
    let name: String = if separator == Some("/") {
        let swap = |it| match it {
            '.' => '/',
            '/' => '.',
            other => other,
        };
        setting.chars().map(swap).collect()
    } else {
        setting.to_owned()
    };
    if name.starts_with("net.") {
        Some("hostNetwork")
    } else if name.starts_with("fs.mqueue.") || IPC_SETTINGS.contains(&name.as_str()) {
        Some("hostIPC")
    } else {
        None
    }
}

/// True if a text is the name of a kernel setting: words of small letters, digits, `-` and `_`, which begin and
/// end with neither of the last two, joined by points or slashes.
fn is_kernel_setting(name: &str) -> bool {
    let is_inner = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "-_".contains(it);
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(is_inner) && word.trim_matches(['-', '_']) == word
    };
    name.len() <= SYSCTL_BYTES_MAX && name.split(['.', '/']).all(is_word)
}

/// Checks the security context of a container. Follows `ValidateSecurityContext`.
pub(super) fn of_container(at: &Field<'_, '_>, host_users: bool, errors: &mut Errors) {
    for member in ["runAsUser", "runAsGroup"] {
        at.at(member).may_be_an_id(errors);
    }
    let mount = at.at("procMount");
    mount.may_be_one_of(&["Default", "Unmasked"], errors);
    if host_users && mount.text() == "Unmasked" {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    profiles(at, errors);
    if !at.at("allowPrivilegeEscalation").is_set() || at.at("allowPrivilegeEscalation").is_true() {
        return;
    }
    if at.at("privileged").is_true() {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(at.invalid(why));
    }
    if at
        .items("capabilities.add")
        .any(|it| it.text() == "CAP_SYS_ADMIN")
    {
        let why =
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(at.invalid(why));
    }
}

/// Checks the seccomp and AppArmor profiles, and in between what is for Windows.
fn profiles(at: &Field<'_, '_>, errors: &mut Errors) {
    const TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
    for (member, name) in [
        ("seccompProfile", "seccomp"),
        ("appArmorProfile", "AppArmor"),
    ] {
        let profile = at.at(member);
        if name == "AppArmor" {
            windows::options(&at.at("windowsOptions"), errors);
        }
        if !profile.is_set() {
            continue;
        }
        let kind = profile.at("type");
        let file = profile.at("localhostProfile");
        if kind.is_empty() {
            errors.push(kind.required(&format!("type is required when {member} is set")));
        } else {
            kind.may_be_one_of(TYPES, errors);
        }
        if kind.text() != "Localhost" {
            let why = format!("can only be set when {name} type is Localhost");
            if file.is_set() && name == "seccomp" {
                // As Kubernetes shows its own type.
                let shown = format!(
                    "{{\"Type\":{},\"LocalhostProfile\":{}}}: {why}",
                    json!(kind.text()),
                    file.value()
                );
                let blamed = file.field();
                errors.push(FieldError::new(FieldErrorKind::Invalid, blamed, shown));
            } else if file.is_set() && TYPES.contains(&kind.text()) {
                errors.push(file.invalid(why));
            }
        } else if file.is_empty() {
            errors.push(file.required(&format!("must be set when {name} type is Localhost")));
        } else if name == "seccomp" {
            file.must_conform(below, errors);
        } else if file.text().trim() != file.text() {
            errors.push(file.invalid("must not be padded with whitespace"));
        }
    }
}
