//! As whom pods and containers run, and what they may do.

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::values::below;

/// How long the name of a kernel setting may be, and how Kubernetes says what it looks like.
const SYSCTL_BYTES_MAX: usize = 253;
const SYSCTL_FORM: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// The security context of a pod.
pub(super) fn of_pod(at: &At<'_, '_>, errors: &mut Errors) {
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
    at.at("seLinuxChangePolicy")
        .may_be_one_of(&["MountOption", "Recursive"], errors);
}

/// The settings of the kernel, each once.
fn kernel_settings(at: &At<'_, '_>, errors: &mut Errors) {
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

/// True if a text is the name of a kernel setting: words of small letters, digits, `-` and `_`, which begin and
/// end with neither of the last two, joined by points or slashes.
fn is_kernel_setting(name: &str) -> bool {
    let is_inner = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "-_".contains(it);
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(is_inner) && word.trim_matches(['-', '_']) == word
    };
    name.len() <= SYSCTL_BYTES_MAX && name.split(['.', '/']).all(is_word)
}

/// The security context of a container.
pub(super) fn of_container(at: &At<'_, '_>, host_users: bool, errors: &mut Errors) {
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

/// What the kernel filters and confines.
fn profiles(at: &At<'_, '_>, errors: &mut Errors) {
    const TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
    for (member, name) in [
        ("seccompProfile", "seccomp"),
        ("appArmorProfile", "AppArmor"),
    ] {
        let profile = at.at(member);
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
            errors.extend(file.is_set().then(|| file.invalid(why)));
        } else if file.is_empty() {
            errors.push(file.required(&format!("must be set when {name} type is Localhost")));
        } else if name == "seccomp" {
            file.must_conform(below, errors);
        } else if file.text().trim() != file.text() {
            errors.push(file.invalid("must not be padded with whitespace"));
        }
    }
}
