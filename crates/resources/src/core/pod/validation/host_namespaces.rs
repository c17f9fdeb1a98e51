//! The namespaces of the host that a pod is in, and what goes together with them.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use super::container::{all_containers, has_host_users};
use crate::validation::field::{Errors, Field};
use crate::validation::later_rules::{DEVICES_OF_USERS, NETWORK_OF_USERS};

/// Checks that ports of pods in the host's network are the same on the host. Follows `validatePodHostNetworkDeps`.
pub(super) fn host_network(spec: &Field<'_, '_>, of_pod: bool, errors: &mut Errors) {
    if !spec.at("hostNetwork").is_true() {
        return;
    }
    for container in spec.items("containers") {
        for port in container.items("ports") {
            let on_host = port.at("hostPort");
            let number = on_host.number().unwrap_or(0);
            let inside = port.at("containerPort").number().unwrap_or(0);
            if (of_pod || number != 0) && number != inside {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(on_host.invalid_value(number, why));
            }
        }
    }
}

/// Checks that a pod that has its own users is in none of the other namespaces of the host, and has no block devices.
/// Follows `validateHostUsers`.
pub(super) fn host_users(spec: &Field<'_, '_>, errors: &mut Errors) {
    const WHY: &str = "when `hostUsers` is false";
    if has_host_users(spec) {
        return;
    }
    if spec.at("hostNetwork").is_true() {
        let error = spec.at("hostNetwork").forbidden(WHY);
        errors.push(error.by_later_rule(NETWORK_OF_USERS));
    }
    for (member, blamed) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.at(member).is_true() {
            errors.push(spec.at(blamed).forbidden(WHY));
        }
    }
    for container in all_containers(spec) {
        let devices = container.at("volumeDevices");
        if !devices.is_empty() {
            errors.push(devices.forbidden(WHY).by_later_rule(DEVICES_OF_USERS));
        }
    }
}
