//! The operating system of a pod, and the options that are for another.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use super::container::all_containers;
use crate::validation::field::{Errors, Field};

const WINDOWS_OPTIONS: &str = "securityContext.windowsOptions";
/// The members of a pod's spec that a pod on Windows must not have, in the order in which Kubernetes looks.
const NOT_IN_WINDOWS_PODS: &[&str] = &[
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "hostUsers",
    "hostPID",
    "hostIPC",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "shareProcessNamespace",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
];
/// The same of a container.
const NOT_IN_WINDOWS_CONTAINERS: &[&str] = &[
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "securityContext.seccompProfile",
    "securityContext.capabilities",
    "securityContext.readOnlyRootFilesystem",
    "securityContext.privileged",
    "securityContext.allowPrivilegeEscalation",
    "securityContext.procMount",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
];

/// Checks the operating system of a pod, if it names one, and that its options are for that. Follows `validateOS`,
/// `validateLinux` and `validateWindows`.
pub(super) fn operating_system(spec: &Field<'_, '_>, errors: &mut Errors) {
    let system = spec.at("os");
    if !system.is_set() {
        return;
    }
    let name = system.at("name");
    match name.text() {
        "" => errors.push(name.required("")),
        "linux" => {
            let why = "windows options cannot be set for a linux pod";
            spec.at(WINDOWS_OPTIONS).must_be_unset(why, errors);
            for container in all_containers(spec) {
                container.at(WINDOWS_OPTIONS).must_be_unset(why, errors);
            }
        }
        "windows" => {
            refuse(spec, NOT_IN_WINDOWS_PODS, errors);
            for container in all_containers(spec) {
                refuse(&container, NOT_IN_WINDOWS_CONTAINERS, errors);
            }
        }
        // Kubernetes blames the parent.
        _ => errors.push(system.unsupported_value(name.text(), &["linux", "windows"])),
    }
}

fn refuse(owner: &Field<'_, '_>, members: &[&str], errors: &mut Errors) {
    for member in members.iter().map(|member| owner.at(member)) {
        // The namespaces of the host are no pointers in Kubernetes, so that false is none.
        let is_none = match *member.value() {
            serde_json::Value::Bool(value) => {
                !value
                    && ["hostPID", "hostIPC"]
                        .iter()
                        .any(|it| member.field().ends_with(it))
            }
            _ => member.is_empty() && !member.value().is_object(),
        };
        if !is_none {
            errors.push(member.forbidden("cannot be set for a windows pod"));
        }
    }
}

/// Checks containers that are processes of the host: all of a pod are, or none. Follows
/// `validateWindowsHostProcessPod`.
pub(super) fn host_processes(spec: &Field<'_, '_>, errors: &mut Errors) {
    const SWITCH: &str = "securityContext.windowsOptions.hostProcess";
    let of_pod = spec.at(SWITCH);
    let (mut all, mut count) = (0, 0);
    for container in all_containers(spec) {
        let own = container.at(SWITCH);
        if of_pod.is_set() && own.is_set() && of_pod.is_true() != own.is_true() {
            let value = of_pod.is_true();
            let why = format!(
                "pod hostProcess value must be identical if both are specified, was {value}"
            );
            errors.push(own.invalid(why));
        }
        all += 1;
        count += usize::from(own.is_true() || (!own.is_set() && of_pod.is_true()));
    }
    if count == 0 {
        return;
    }
    if count != all {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(spec.invalid_value("", why));
    }
    let network = spec.at("hostNetwork");
    if !network.is_true() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(network.invalid_value(false, why));
    }
}
