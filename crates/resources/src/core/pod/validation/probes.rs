//! The probes and lifecycle hooks of containers.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use crate::validation::field::{Errors, Field};
use crate::validation::values::header_name;

/// The actions of probes and hooks, in the order in which kube-apiserver checks them.
const OF_PROBES: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
const OF_HOOKS: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Checks the lifecycle hooks and probes of a container that runs as long as its pod. Follows `validateLifecycle` and
/// `validateProbe`.
pub(super) fn probes(container: &Field<'_, '_>, grace: Option<i64>, errors: &mut Errors) {
    for hook in ["lifecycle.postStart", "lifecycle.preStop"].map(|hook| container.at(hook)) {
        if hook.is_set() {
            handler(&hook, OF_HOOKS, grace, errors);
        }
    }
    for name in PROBES {
        let it = container.at(name);
        if it.is_set() {
            probe(&it, grace, errors);
            own_rules(&it, name, errors);
        }
    }
}

/// Checks that an init container that is no sidecar has no hooks and no probes. Follows `validateInitContainers`.
pub(super) fn no_probes(container: &Field<'_, '_>, errors: &mut Errors) {
    for member in std::iter::once("lifecycle").chain(PROBES) {
        let why = "may not be set for init containers without restartPolicy=Always";
        container.at(member).must_be_unset(why, errors);
    }
}

fn own_rules(probe: &Field<'_, '_>, name: &str, errors: &mut Errors) {
    let grace = probe.at("terminationGracePeriodSeconds");
    if name == "readinessProbe" {
        if grace.is_set() {
            errors.push(grace.invalid("must not be set for readinessProbes"));
        }
    } else if probe.at("successThreshold").number() != Some(1) {
        errors.push(probe.at("successThreshold").invalid("must be 1"));
    }
}

fn probe(at: &Field<'_, '_>, grace: Option<i64>, errors: &mut Errors) {
    handler(at, OF_PROBES, grace, errors);
    for member in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        at.at(member).must_not_be_negative(errors);
    }
    let grace = at.at("terminationGracePeriodSeconds");
    if grace.number().is_some_and(|seconds| seconds <= 0) {
        errors.push(grace.invalid("must be greater than 0"));
    }
}

fn handler(at: &Field<'_, '_>, kinds: &[&str], grace: Option<i64>, errors: &mut Errors) {
    let mut found = kinds.iter().filter(|kind| at.at(kind).is_set());
    match found.next() {
        Some(kind) => action(&at.at(kind), kind, grace, errors),
        None => errors.push(at.required("must specify a handler type")),
    }
    let why = "may not specify more than 1 handler type";
    errors.extend(found.map(|kind| at.at(kind).forbidden(why)));
}

fn action(at: &Field<'_, '_>, kind: &str, grace: Option<i64>, errors: &mut Errors) {
    match kind {
        "exec" => at.at("command").must_be_set(errors),
        "sleep" => {
            let seconds = at.at("seconds").number().unwrap_or(0);
            if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
                let why = format!(
                    "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                );
                errors.push(at.invalid_value(seconds, why));
            }
        }
        "httpGet" => {
            at.at("path").must_be_set(errors);
            at.at("port").must_be_a_port_or_its_name(errors);
            at.at("scheme").may_be_one_of(&["HTTP", "HTTPS"], errors);
            for header in at.items("httpHeaders") {
                let name = header.at("name").text();
                let wrong = header_name(name).into_iter();
                let headers = at.at("httpHeaders");
                errors.extend(wrong.map(|why| headers.invalid_value(name, why)));
            }
        }
        _ => at.at("port").must_be_a_port_or_its_name(errors),
    }
}
