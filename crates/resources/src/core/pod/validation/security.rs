//! The security contexts of pods and containers.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::cell::Cell;
use std::collections::BTreeSet;

use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::json;

use super::windows;
use crate::validation::field::{Errors, Field};
use crate::validation::later_rules::{HOST_SETTINGS, RECURSIVE_LABELS};
use crate::validation::values::below;

/// Maximum length of the name of a sysctl, in bytes, and the pattern that Kubernetes shows for it.
const SYSCTL_BYTES_MAX: usize = 253;
const SYSCTL_FORM: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// The types of seccomp and AppArmor profiles.
const PROFILE_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
/// Maximum length of the name of an AppArmor profile, in bytes.
const PROFILE_BYTES_MAX: usize = 4_095;

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
pub(super) fn of_pod(spec: &Field<'_, '_>, errors: &mut Errors) {
    let at = spec.at("securityContext");
    for member in ["fsGroup", "runAsUser", "runAsGroup"] {
        at.at(member).may_be_an_id(errors);
    }
    for group in at.items("supplementalGroups") {
        group.may_be_an_id(errors);
    }
    if spec.at("shareProcessNamespace").is_true() && spec.at("hostPID").is_true() {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        let blamed = at.at("shareProcessNamespace");
        errors.push(blamed.invalid_value(true, why));
    }
    kernel_settings(spec, errors);
    at.at("fsGroupChangePolicy")
        .may_be_one_of(&["Always", "OnRootMismatch"], errors);
    seccomp(&at.at("seccompProfile"), errors);
    windows::options(&at.at("windowsOptions"), errors);
    app_armor(&at.at("appArmorProfile"), errors);
    at.at("supplementalGroupsPolicy")
        .may_be_one_of(&["Merge", "Strict"], errors);
    // The feature gate of the other policy, MountOption, is off in Kubernetes 1.36.
    let labels = at.at("seLinuxChangePolicy");
    if labels.is_set() && labels.text() != "Recursive" {
        let error = labels.unsupported(&["Recursive"]);
        errors.push(if labels.text() == "MountOption" {
            error.by_later_rule(RECURSIVE_LABELS)
        } else {
            error
        });
    }
}

/// Checks the sysctls of a pod, of which each may occur once, and none may belong to a namespace that the pod shares
/// with the host. Follows `validateSysctls`.
fn kernel_settings(spec: &Field<'_, '_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for setting in spec.items("securityContext.sysctls") {
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
        let shared = namespace_switch(name.text()).filter(|it| spec.at(it).is_true());
        if let Some(switch) = shared {
            let error = name.invalid(format!("may not be specified when '{switch}' is true"));
            errors.push(error.by_later_rule(HOST_SETTINGS));
        }
        names.insert(name.text());
    }
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
pub(super) fn of_container(
    at: &Field<'_, '_>,
    host_users: bool,
    room: &Cell<usize>,
    errors: &mut Errors,
) {
    for member in ["runAsUser", "runAsGroup"] {
        at.at(member).may_be_an_id(errors);
    }
    let mount = at.at("procMount");
    mount.may_be_one_of(&["Default", "Unmasked"], errors);
    if host_users && mount.text() == "Unmasked" {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    seccomp(&at.at("seccompProfile"), errors);
    escalation(at, room, errors);
    windows::options(&at.at("windowsOptions"), errors);
    app_armor(&at.at("appArmorProfile"), errors);
}

/// Checks that a container whose processes gain no privileges has none to begin with. Errors that show its context
/// again and again have no more bytes than there is room for in the pod.
fn escalation(at: &Field<'_, '_>, room: &Cell<usize>, errors: &mut Errors) {
    const NO_GAIN: &str = "cannot set `allowPrivilegeEscalation` to false and";
    let gains = at.at("allowPrivilegeEscalation");
    if !gains.is_set() || gains.is_true() {
        return;
    }
    if at.at("privileged").is_true() {
        errors.push(at.invalid(format!("{NO_GAIN} `privileged` to true")));
    }
    let added = at.items("capabilities.add");
    let all_powerful = added.filter(|it| it.text() == "CAP_SYS_ADMIN").count();
    for _ in 0..all_powerful {
        let Some(left) = room.get().checked_sub(1) else {
            break;
        };
        let error = at.invalid(format!("{NO_GAIN} `capabilities.Add` CAP_SYS_ADMIN"));
        room.set(left.saturating_sub(error.detail.len()));
        errors.push(error);
    }
}

/// Checks a seccomp profile, if there is one. Follows `validateSeccompProfileField`.
fn seccomp(profile: &Field<'_, '_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.at("type"), profile.at("localhostProfile"));
    if kind.is_empty() {
        errors.push(kind.required("type is required when seccompProfile is set"));
    } else {
        kind.may_be_one_of(PROFILE_TYPES, errors);
    }
    if kind.text() == "Localhost" {
        if file.is_set() {
            file.must_conform(below, errors);
        } else {
            errors.push(file.required("must be set when seccomp type is Localhost"));
        }
    } else if file.is_set() {
        // As Kubernetes shows its own type.
        let shown = format!(
            "{{\"Type\":{},\"LocalhostProfile\":{}}}: can only be set when seccomp type is Localhost",
            json!(kind.text()),
            file.value()
        );
        let kind = FieldErrorKind::Invalid;
        errors.push(FieldError::new(kind, file.field(), shown));
    }
}

/// Checks an AppArmor profile, if there is one. Follows `ValidateAppArmorProfileField`.
fn app_armor(profile: &Field<'_, '_>, errors: &mut Errors) {
    if !profile.is_set() {
        return;
    }
    let (kind, file) = (profile.at("type"), profile.at("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            if file.text().trim() != file.text() {
                errors.push(file.invalid("must not be padded with whitespace"));
            } else if file.is_empty() {
                errors.push(file.required("must be set when AppArmor type is Localhost"));
            }
            file.must_have_at_most(PROFILE_BYTES_MAX, errors);
        }
        "RuntimeDefault" | "Unconfined" => {
            if file.is_set() {
                errors.push(file.invalid("can only be set when AppArmor type is Localhost"));
            }
        }
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _ => errors.push(kind.unsupported(PROFILE_TYPES)),
    }
}
